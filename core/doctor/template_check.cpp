// Could mails be composed? Loads addresses, link and templates as mailroom send would.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "doctor/subject.hpp"
#include "mail/configured_mail.hpp"
#include "queue/preconditions.hpp"
#include "templates/template_store.hpp"

namespace mailroom::doctor {
namespace {

bool is_mail_configured(const config::Settings& settings) {
  return std::any_of(settings.values.begin(), settings.values.end(), [](const config::SettingValue& value) {
    return value.key.starts_with("send.") && value.origin.kind != config::OriginKind::default_value;
  });
}

/// `4 from /etc/mailroom/templates, 2 built-in`
std::string summary_of(const templates::TemplateSet& templates, const std::string& directory) {
  const auto count = [&](templates::TemplateSource::Kind kind) {
    return std::count_if(templates.sources().begin(), templates.sources().end(),
                         [&](const templates::TemplateSource& source) { return source.kind == kind; });
  };
  const auto builtin = fmt::format("{} built-in", count(templates::TemplateSource::Kind::builtin));
  if (directory.empty()) return builtin;
  return fmt::format("{} from {}, {}", count(templates::TemplateSource::Kind::file), directory, builtin);
}

/// Throws Error(configuration) if a mail waits that needs send.link.
void require_no_links(Subject& subject) {
  if (!subject.connection || !subject.schema_usable || !subject.has_tables) return;
  for (const auto& queue : subject.settings->collect.queues) {
    if (has_queue(*subject.connection, queue)) queue::require_unsigned_tokens(*subject.connection, queue);
  }
}

Findings check_templates_of(Subject& subject, const config::Settings& settings,
                            templates::TemplateStore& store) {
  mail::parse_configured_mail(settings);
  // Templates can be written before anything is sent.
  const bool sends = !settings.send.path.targets.empty();
  const bool lacks_link = sends && settings.send.link.empty();
  if (sends) config::require_keys({"send.from"}, settings);
  if (lacks_link) require_no_links(subject);
  const auto templates = store.load(settings.send.templates);
  Findings findings;
  for (const auto& text : templates->warnings())
    findings.push_back(warning(text, {}));
  return or_fine(std::move(findings),
                 summary_of(*templates, settings.send.templates) +
                     (lacks_link ? "; send.link is not set: a mail with a link waits until it is" : ""));
}

}  // namespace

Findings check_templates(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  Findings findings;
  templates::TemplateStore store;
  if (is_mail_configured(settings)) findings = check_templates_of(subject, settings, store);
  for (const auto& profile : settings.profiles) {
    auto own = of_profile(settings, profile.name, [&](const config::Settings& changed) {
      return check_templates_of(subject, changed, store);
    });
    std::ranges::move(own, std::back_inserter(findings));
  }
  if (findings.empty()) return {fine("not configured")};
  return findings;
}

}  // namespace mailroom::doctor
