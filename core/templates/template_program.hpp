// A Mustache template that has been taken apart, and what it makes of data.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mail/address.hpp"
#include "templates/template_check.hpp"
#include "templates/template_data.hpp"

namespace mailroom::templates {

/// Renders as the Mustache specification says, with these differences, all of which docs/mail.md names: a
/// name that nothing has is refused, not left blank, and so is a list or an object where a text is wanted;
/// and a partial is put in without its last line end, and is not indented.
class TemplateProgram {
 public:
  enum class Escape { none, html };

  /// How a template finds the partial of a name.
  using Partials = std::function<const TemplateProgram&(const std::string& name)>;

  struct Options {
    Escape escape = Escape::none;
    std::size_t largest = 0;  ///< bytes of the result
    Partials partial;
  };

  /// `text` without defect, and its tags. `file` is its name in refusals.
  TemplateProgram(std::string file, std::string_view text, const std::vector<TemplateTag>& tags);

  /// A value is never parsed as a template. Refuses with file and line what the class does not render, and
  /// what would become too large or take too long. Several threads may use one program.
  std::variant<std::string, mail::Refusal> render(const TemplateData& data, const Options& options) const;

 private:
  friend class TemplateRun;

  struct Step {
    enum class Kind { text, variable, unescaped, section, inverted, partial };
    Kind kind = Kind::text;
    std::string text{};  ///< as it is, or the name
    std::size_t line = 0;
    std::size_t end = 0;  ///< of a section: the index after its last step
  };

  void add_text(std::string_view text, std::size_t line);

  std::string file_;
  std::vector<Step> steps_;
};

/// `text` with `&`, `<`, `>`, `"` and `'` as references that any reader of HTML knows: `&#39;`, not `&apos;`.
std::string escaped_html(std::string_view text);

}  // namespace mailroom::templates
