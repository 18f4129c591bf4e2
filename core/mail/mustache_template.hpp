// Renders Mustache templates, and keeps the library that does so out of all other files.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "mail/template_values.hpp"

namespace mailroom {

/// The variables of one mail as the library wants them, made once for all its parts.
class MustacheValues {
 public:
  explicit MustacheValues(const TemplateVariables& variables);
  ~MustacheValues();
  MustacheValues(const MustacheValues&) = delete;
  MustacheValues& operator=(const MustacheValues&) = delete;

 private:
  friend class MustacheTemplate;
  struct Data;
  std::unique_ptr<Data> data_;
};

/// A parsed Mustache template. Hides kainjow's library: its header takes seconds to compile.
class MustacheTemplate {
 public:
  enum class Escape { none, html };

  /// `partials` are the texts of {{> name}} by name. Throws std::invalid_argument with the library's reason
  /// if `text` does not parse.
  MustacheTemplate(const std::string& text, Escape escape,
                   const std::map<std::string, std::string>& partials);
  ~MustacheTemplate();
  MustacheTemplate(MustacheTemplate&&) noexcept;
  MustacheTemplate& operator=(MustacheTemplate&&) noexcept;

  /// A section of an empty variable is left out. A value is never parsed as a template. Throws
  /// std::logic_error for a name that is no variable, and for a partial that is missing or does not parse:
  /// they are checked when a template is loaded. Not thread-safe.
  std::string render(const MustacheValues& values) const;

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

/// `text` with `&`, `<`, `>`, `"` and `'` as references that any reader of HTML knows: `&#39;`, not `&apos;`.
std::string escaped_html(const std::string& text);

}  // namespace mailroom
