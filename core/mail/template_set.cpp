// Chooses a source for each part, then checks, parses and tries each template at load.

#include "mail/template_set.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mail/template_check.hpp"
#include "mail/template_values.hpp"

namespace mailroom {
namespace {

// Values that no template contains by chance.
constexpr auto link_mark = "mark0link";
constexpr auto token_mark = "mark0token";
constexpr auto code_mark = "mark0code";

TemplateVariables marked_variables(MailAction action) {
  auto variables = variables_of({.action = action,
                                 .email = "a@b.example",
                                 .login = "a",
                                 .link = link_mark,
                                 .token = token_mark,
                                 .code = code_mark});
  return variables;
}

/// Without what a mail program does not show.
std::string without_comments(const std::string& html) {
  std::string shown;
  std::size_t at = 0;
  for (auto begin = html.find("<!--"); begin != std::string::npos; begin = html.find("<!--", at)) {
    shown += html.substr(at, begin - at);
    const auto end = html.find("-->", begin);
    if (end == std::string::npos) return shown;
    at = end + 3;
  }
  return shown + html.substr(at);
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

/// Why a mail with this part would be of no use to its reader: `the subject is empty`, `it has no {{code}},
/// which a recovery asks for`. Found by rendering it, so that partials and sections count as a reader sees
/// them.
std::vector<std::string> uses_missing(const MustacheTemplate& part_template, MailAction action,
                                      MailPart part) {
  auto text = part_template.render(MustacheValues(marked_variables(action)));
  if (part == MailPart::html) text = without_comments(text);
  if (part == MailPart::subject)
    return is_blank(text) ? std::vector<std::string>{"the subject is empty"} : std::vector<std::string>{};
  if (is_blank(text))
    return {part == MailPart::html ? "it is empty, and the HTML is what readers are shown: the mail is blank"
                                   : "it is empty: the mail is blank where HTML is not shown"};
  const auto shows = [&](const char* mark) { return text.find(mark) != std::string::npos; };
  std::vector<std::string> missing;
  if (!shows(link_mark) && !shows(token_mark))
    missing.emplace_back("it has neither {{link}} nor {{token}}: its reader can do nothing with the mail");
  if (action == MailAction::recovery && !shows(code_mark))
    missing.emplace_back("it has no {{code}}, which a recovery asks for");
  return missing;
}

std::size_t index_of(MailAction action, MailPart part) {
  return static_cast<std::size_t>(action) * all_mail_parts.size() + static_cast<std::size_t>(part);
}

/// Values that make every section of a template, or every inverted one, appear.
TemplateVariables trial_variables(bool are_empty) {
  auto variables = variables_of({});
  for (auto& [name, text] : variables)
    text = are_empty ? "" : "x";
  return variables;
}

/// Parses a template that has been checked, and tries it. The checker refuses whatever the library does; this
/// turns a difference between the two into an error at load, not while mails are sent.
MustacheTemplate parse(const std::string& place, const CheckedTemplate& checked, MailPart part) {
  try {
    MustacheTemplate parsed(
        checked.text,
        part == MailPart::html ? MustacheTemplate::Escape::html : MustacheTemplate::Escape::none,
        checked.partials);
    for (const bool are_empty : {false, true})
      parsed.render(MustacheValues(trial_variables(are_empty)));
    return parsed;
  } catch (const std::exception& error) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: not valid Mustache: {}", shown_text(place), shown_text(error.what())));
  }
}

bool has_file(const TemplateFiles& files, MailAction action, MailPart part) {
  return files.texts.count(std::string(builtin_template(action, part).file)) > 0;
}

}  // namespace

TemplateSet::TemplateSet(const TemplateFiles& files) {
  find_sources(files);
  warn_of_files(files);
  TemplateChecker checker(files);
  std::vector<std::string> useless;
  for (const auto& source : sources_) {
    if (source.kind == TemplateSource::Kind::none) continue;
    const bool is_file = source.kind == TemplateSource::Kind::file;
    const auto place = is_file ? source.path : "built-in " + source.file;
    const auto text = is_file ? files.texts.at(source.file)
                              : std::string(builtin_template(source.action, source.part).text);
    auto& parsed = slot(source.action, source.part);
    parsed = parse(place, checker.check(place, text, source.part), source.part);
    if (!is_file) continue;
    for (const auto& missing : uses_missing(*parsed, source.action, source.part))
      useless.push_back(fmt::format("{}: {}", shown_text(place), missing));
  }
  warnings_.insert(warnings_.end(), checker.warnings().begin(), checker.warnings().end());
  warnings_.insert(warnings_.end(), useless.begin(), useless.end());
}

RenderedMail TemplateSet::render(const TemplateValues& values) const {
  const MustacheValues variables(variables_of(values));
  const auto rendered = [&](MailPart part) { return slot(values.action, part)->render(variables); };
  RenderedMail mail{
      .subject = rendered(MailPart::subject), .text = rendered(MailPart::text), .html = std::nullopt};
  if (slot(values.action, MailPart::html)) mail.html = rendered(MailPart::html);
  return mail;
}

std::optional<MustacheTemplate>& TemplateSet::slot(MailAction action, MailPart part) {
  return templates_[index_of(action, part)];
}

const std::optional<MustacheTemplate>& TemplateSet::slot(MailAction action, MailPart part) const {
  return templates_[index_of(action, part)];
}

void TemplateSet::find_sources(const TemplateFiles& files) {
  for (const auto& builtin : builtin_templates()) {
    TemplateSource source{.action = builtin.action,
                          .part = builtin.part,
                          .file = std::string(builtin.file),
                          .kind = TemplateSource::Kind::builtin,
                          .path = {}};
    if (has_file(files, builtin.action, builtin.part)) {
      source.kind = TemplateSource::Kind::file;
      source.path = (std::filesystem::path(files.directory) / source.file).string();
    } else if (builtin.part == MailPart::html && has_file(files, builtin.action, MailPart::text)) {
      source.kind = TemplateSource::Kind::none;
    }
    sources_.push_back(std::move(source));
  }
}

void TemplateSet::warn_of_files(const TemplateFiles& files) {
  const auto path = [&](const std::string& file) {
    return shown_text((std::filesystem::path(files.directory) / file).string());
  };
  std::vector<std::string> names;
  for (const auto& builtin : builtin_templates())
    names.emplace_back(builtin.file);
  for (const auto& file : files.ignored) {
    const auto meant = nearest_word(file, names);
    warnings_.push_back(fmt::format("{} is not used{}", path(file),
                                    meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }
  for (const auto action : all_mail_actions) {
    if (!has_file(files, action, MailPart::html) || has_file(files, action, MailPart::text)) continue;
    warnings_.push_back(fmt::format("{} is accompanied by the built-in text; add {}",
                                    path(std::string(builtin_template(action, MailPart::html).file)),
                                    builtin_template(action, MailPart::text).file));
  }
}

TemplateSet load_templates(const std::string& directory) {
  return TemplateSet(directory.empty() ? TemplateFiles{} : read_template_files(directory));
}

}  // namespace mailroom
