// The templates in force, built-in or the operator's, and the mails that they render.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mail/address.hpp"
#include "templates/template_check.hpp"
#include "templates/template_data.hpp"
#include "templates/template_files.hpp"
#include "templates/template_program.hpp"

namespace mailroom::templates {

/// Where the template of a part comes from.
struct TemplateSource {
  enum class Kind { builtin, file, none };
  std::string file;  ///< `activation.html`, `receipt.de.txt`
  Kind kind = Kind::builtin;
  std::string path;  ///< of a file
};

/// The content of one mail, not encoded yet; it has a text, HTML or both.
struct RenderedMail {
  std::string subject;
  std::optional<std::string> text;
  std::optional<std::string> html;
  /// What its parts were made of, by comma: `receipt.de.subject,receipt.txt`.
  std::string files{};
};

/// A template by its name, and the reader's locale, which may be empty.
struct TemplateChoice {
  std::string_view name;
  std::string_view locale{};
};

/// What is wrong with an HTML part of `size` bytes: programs show the begin of a large one. Empty for
/// nothing.
std::string problem_of_html_size(std::size_t size);

/// The templates of all mails. Each part is chosen for itself: of the files whose locale suits, the one with
/// the most precise; of a built-in template without such a file, its own, except that one with a text of the
/// operator's but no HTML has text only: our HTML would say something else than that.
class TemplateSet {
 public:
  /// Throws Error(configuration) with file, line, reason and the known names for a template that cannot be
  /// used; docs/mail.md lists the reasons.
  explicit TemplateSet(const TemplateFiles& files);

  /// `scope` is what the templates may name; see template_scope(). A part has at most `largest` bytes. Values
  /// are escaped in HTML only. Refuses, with file and line, what cannot be rendered. Several threads may use
  /// one set.
  std::variant<RenderedMail, mail::Refusal> render(const TemplateChoice& choice, const TemplateData& scope,
                                                   std::size_t largest) const;

  bool has(std::string_view name) const { return templates_.find(name) != templates_.end(); }
  std::vector<std::string> names() const;

  /// First one for each part of each built-in template, then the operator's other files.
  const std::vector<TemplateSource>& sources() const { return sources_; }
  /// What is probably wrong in the operator's files: `templates/activation.html:3: …`.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Part {
    TemplateProgram program;
    std::string file;
    bool is_builtin = false;
  };
  /// The same part for each locale.
  using PartByLocale = std::map<std::string, Part>;
  using Parts = std::map<MailPart, PartByLocale>;
  using Chain = std::vector<std::string>;  ///< of locale_chain()

  /// The parts of a mail; null for one that it does not have.
  struct Chosen {
    const Part* subject = nullptr;
    const Part* text = nullptr;
    const Part* html = nullptr;
  };

  void load_builtins(TemplateChecker& checker);
  void load_files(const TemplateFiles& files, TemplateChecker& checker);
  void find_sources(const TemplateFiles& files, const TemplateNames& names);
  void warn_of_ignored(const TemplateFiles& files);
  void warn_of_missing(const TemplateFiles& files);
  void warn_of_mixed_locales(const TemplateFiles& files, const std::string& name);
  void warn_of_untranslated();
  void warn_of_uses(const TemplateFiles& files);
  static const Part* choose(const Parts& parts, MailPart part, const Chain& chain);
  static Chosen choose_all(const Parts& parts, const Chain& chain);
  std::variant<std::string, mail::Refusal> render_part(const TemplateProgram& program, MailPart part,
                                                       const Chain& chain, const TemplateData& scope,
                                                       std::size_t largest) const;
  std::vector<std::string> uses_missing(const Part& used, const std::string& name, MailPart part,
                                        const std::string& locale) const;

  std::map<std::string, Parts, std::less<>> templates_;
  std::map<std::string, std::map<std::string, TemplateProgram>> partials_;  ///< by name and locale
  std::vector<TemplateSource> sources_;
  std::vector<std::string> warnings_;
};

/// The set of `directory`; of the built-in templates if that is empty. Throws as TemplateSet() and
/// read_template_files() do.
TemplateSet load_templates(const std::string& directory);

}  // namespace mailroom::templates
