// Could mails be composed? Loads addresses, link and templates as mailroom send would.

#include <algorithm>
#include <fmt/format.h>

#include "doctor/subject.hpp"
#include "mail/configured_mail.hpp"
#include "mail/template_set.hpp"

namespace mailroom {
namespace {

bool is_mail_configured(const Settings& settings) {
  return std::any_of(settings.values.begin(), settings.values.end(), [](const SettingValue& value) {
    return value.key.starts_with("send.") && value.origin.kind != OriginKind::default_value;
  });
}

/// `4 from /etc/mailroom/templates, 2 built-in`
std::string summary_of(const TemplateSet& templates, const std::string& directory) {
  const auto count = [&](TemplateSource::Kind kind) {
    return std::count_if(templates.sources().begin(), templates.sources().end(),
                         [&](const TemplateSource& source) { return source.kind == kind; });
  };
  const auto builtin = fmt::format("{} built-in", count(TemplateSource::Kind::builtin));
  if (directory.empty()) return builtin;
  return fmt::format("{} from {}, {}", count(TemplateSource::Kind::file), directory, builtin);
}

}  // namespace

Findings check_templates(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  if (!is_mail_configured(settings)) return {fine("not configured")};
  parse_configured_mail(settings);
  // Templates can be written before anything is sent.
  if (!settings.send.relay.empty()) require_keys({"send.from", "send.link"}, settings);
  const auto templates = load_templates(settings.send.templates);
  Findings findings;
  for (const auto& text : templates.warnings())
    findings.push_back(warning(text, {}));
  return or_fine(std::move(findings), summary_of(templates, settings.send.templates));
}

}  // namespace mailroom
