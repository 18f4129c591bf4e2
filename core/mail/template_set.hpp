// The templates in force, built-in or the operator's, and the mails that they render.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "mail/mustache_template.hpp"
#include "mail/template_files.hpp"
#include "mail/template_values.hpp"

namespace mailroom {

/// Where the template of a part comes from.
struct TemplateSource {
  enum class Kind { builtin, file, none };
  MailAction action = MailAction::activation;
  MailPart part = MailPart::text;
  std::string file;  ///< `activation.html`
  Kind kind = Kind::builtin;
  std::string path;  ///< of a file
};

/// The text of one mail, not encoded yet.
struct RenderedMail {
  std::string subject;
  std::string text;
  std::optional<std::string> html;  ///< nullopt: the mail has text only
};

/// The templates of all mails. A missing file is replaced by a built-in template, except that an action with
/// a .txt but no .html of its own has text only: our HTML would say something else than the operator's text.
class TemplateSet {
 public:
  /// Throws Error(configuration) with file, line, reason and the known names for a template that cannot be
  /// used; docs/mail.md lists the reasons.
  explicit TemplateSet(const TemplateFiles& files);

  /// Not thread-safe. Values are escaped in HTML only.
  RenderedMail render(const TemplateValues& values) const;

  /// One for each part of each action.
  const std::vector<TemplateSource>& sources() const { return sources_; }
  /// What is probably wrong in the operator's files: `templates/activation.html:3: …`.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::optional<MustacheTemplate>& slot(MailAction action, MailPart part);
  const std::optional<MustacheTemplate>& slot(MailAction action, MailPart part) const;
  void find_sources(const TemplateFiles& files);
  void warn_of_files(const TemplateFiles& files);

  std::array<std::optional<MustacheTemplate>, 6> templates_;
  std::vector<TemplateSource> sources_;
  std::vector<std::string> warnings_;
};

/// The set of `directory`; of the built-in templates if that is empty. Throws as TemplateSet() and
/// read_template_files() do.
TemplateSet load_templates(const std::string& directory);

}  // namespace mailroom
