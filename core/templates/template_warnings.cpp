// What a template set warns of: files that nothing uses, parts that are missing or of another locale, and
// mails of no use to their readers.

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/wording.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::templates {
namespace {

// Values that no template contains by chance.
constexpr auto link_mark = "mark0link";
constexpr auto token_mark = "mark0token";
constexpr auto code_mark = "mark0code";

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

/// Why a mail of a built-in name would be of no use with this part: `the subject is empty`, `it has no
/// {{code}}, which a recovery asks for`.
std::vector<std::string> uses_missing_in(const std::string& text, const BuiltinTemplate& builtin) {
  if (builtin.part == MailPart::subject)
    return is_blank(text) ? std::vector<std::string>{"the subject is empty"} : std::vector<std::string>{};
  if (is_blank(text))
    return {builtin.part == MailPart::html
                ? "it is empty, and the HTML is what readers are shown: the mail is blank"
                : "it is empty: the mail is blank where HTML is not shown"};
  const auto shows = [&](const char* mark) { return text.find(mark) != std::string::npos; };
  std::vector<std::string> missing;
  if (!shows(link_mark) && !shows(token_mark))
    missing.emplace_back("it has neither {{link}} nor {{token}}: its reader can do nothing with the mail");
  if (builtin.shows_code && !shows(code_mark))
    missing.push_back(fmt::format("it has no {{{{code}}}}, which a {} asks for", builtin.name));
  return missing;
}

}  // namespace

void TemplateSet::warn_of_ignored(const TemplateFiles& files) {
  std::vector<std::string> known;
  for (const auto& [name, parts] : templates_) {
    for (const auto part : all_mail_parts)
      known.push_back(name + std::string(suffix_of(part)));
  }
  for (const auto& file : files.ignored) {
    const auto meant = nearest_word(file, known);
    warnings_.push_back(fmt::format("{} is not used{}", shown_text(files.path_of(file)),
                                    meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }
}

void TemplateSet::warn_of_missing(const TemplateFiles& files) {
  for (const auto& entry : templates_) {
    const auto& name = entry.first;
    const auto& parts = entry.second;
    const auto chosen = choose_all(parts, locale_chain(""));
    const auto add = [&](const std::string& what, MailPart part) {
      warnings_.push_back(fmt::format("{}{}; add {}{}", name, what, name, suffix_of(part)));
    };
    if (chosen.html != nullptr && !chosen.html->is_builtin && chosen.text != nullptr &&
        chosen.text->is_builtin)
      warnings_.push_back(fmt::format("{} is accompanied by the built-in text; add {}",
                                      shown_text(files.path_of(chosen.html->file)), chosen.text->file));
    if (chosen.subject == nullptr)
      add(" has no subject for all locales, so its mails may be rejected", MailPart::subject);
    if (chosen.text == nullptr && chosen.html == nullptr)
      add(" has no text for all locales, so its mails may be rejected", MailPart::text);
    warn_of_mixed_locales(files, name);
  }
  warn_of_untranslated();
}

void TemplateSet::warn_of_untranslated() {
  std::map<std::string, std::set<std::string>> locales_of;  // of the operator's templates
  std::set<std::string> locales;
  for (const auto& [name, parts] : templates_) {
    for (const auto& [part, by_locale] : parts) {
      for (const auto& [locale, used] : by_locale) {
        if (used.is_builtin) continue;
        locales_of[name].insert(locale);
        if (!locale.empty()) locales.insert(locale);
      }
    }
  }
  for (const auto& locale : locales) {
    const auto chain = locale_chain(locale);
    const bool has_language =
        std::any_of(chain.begin() + 1, chain.end(), [&](const auto& each) { return locales.contains(each); });
    if (has_language) continue;
    std::vector<std::string> without;
    for (const auto& [name, own] : locales_of) {
      const bool has_it = std::ranges::any_of(
          chain, [&own = own](const auto& each) { return !each.empty() && own.contains(each); });
      if (!has_it) without.push_back(name);
    }
    // A locale of fewer than half is a start. Of another one, a template without it may have lost its files.
    const auto with = locales_of.size() - without.size();
    if (with < without.size()) continue;
    for (const auto& name : without)
      warnings_.push_back(fmt::format(
          "{} has no file for {}, though {} of {} templates {} one: whoever reads {} gets another language",
          name, locale, with, locales_of.size(), with == 1 ? "has" : "have", locale));
  }
}

void TemplateSet::warn_of_mixed_locales(const TemplateFiles& files, const std::string& name) {
  const auto& parts = templates_.at(name);
  std::map<std::string, const Part*> translated;  // the first file of each locale
  for (const auto& [part, by_locale] : parts) {
    for (const auto& [locale, used] : by_locale) {
      if (!locale.empty()) translated.emplace(locale, &used);
    }
  }
  for (const auto& [locale, of_locale] : translated) {
    const auto chosen = choose_all(parts, locale_chain(locale));
    for (const auto& [used, part] : {std::pair(chosen.subject, MailPart::subject),
                                     {chosen.text, MailPart::text},
                                     {chosen.html, MailPart::html}}) {
      if (used == nullptr || parts.at(part).count(locale) > 0) continue;
      const auto stem = of_locale->file.substr(0, of_locale->file.rfind('.'));
      warnings_.push_back(
          fmt::format("{} is accompanied by {}{}; add {}{}", shown_text(files.path_of(of_locale->file)),
                      used->is_builtin ? "the built-in " : "", used->file, stem, suffix_of(part)));
    }
  }
}

void TemplateSet::warn_of_uses(const TemplateFiles& files) {
  for (const auto& builtin : builtin_templates()) {
    const std::string name(builtin.name);
    for (const auto& [locale, used] : templates_.at(name).at(builtin.part)) {
      if (used.is_builtin) continue;
      for (const auto& missing : uses_missing(used, name, builtin.part, locale))
        warnings_.push_back(fmt::format("{}: {}", shown_text(files.path_of(used.file)), missing));
    }
  }
}

std::vector<std::string> TemplateSet::uses_missing(const Part& used, const std::string& name, MailPart part,
                                                   const std::string& locale) const {
  const auto& builtin = *find_builtin(name, part);
  // Found by rendering it, so that partials and sections count as a reader sees them.
  const TemplateValues marked{.action = name,
                              .email = "a@b.example",
                              .login = "a",
                              .link = link_mark,
                              .token = token_mark,
                              .code = builtin.shows_code ? code_mark : ""};
  constexpr std::size_t largest = 16 * 1024 * 1024;
  const auto rendered = render_part(used.program, part, locale_chain(locale),
                                    std::get<TemplateData>(template_scope(marked, "")), largest);
  if (const auto* refusal = std::get_if<mail::Refusal>(&rendered)) return {refusal->reason};
  const auto& text = std::get<std::string>(rendered);
  return uses_missing_in(part == MailPart::html ? without_comments(text) : text, builtin);
}

}  // namespace mailroom::templates
