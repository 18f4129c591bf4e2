// Chooses a file for each part and locale, and renders it.

#include "templates/template_set.hpp"

#include <fmt/format.h>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/wording.hpp"

namespace mailroom::templates {
namespace {

std::string place_of(const BuiltinTemplate& builtin) {
  return "built-in " + std::string(builtin.file);
}

bool has_file(const TemplateFiles& files, std::string_view file) {
  return files.texts.count(std::string(file)) > 0;
}

}  // namespace

TemplateSet::TemplateSet(const TemplateFiles& files) {
  TemplateChecker checker(files);
  load_builtins(checker);
  load_files(files, checker);
  for (const auto& [file, partial] : checker.partials()) {
    const auto name = *parse_template_file(file);
    partials_[name.name].insert_or_assign(name.locale, TemplateProgram(file, partial.text, partial.tags));
  }
  find_sources(files, checker.names());
  warn_of_ignored(files);
  warn_of_missing(files);
  warnings_.insert(warnings_.end(), checker.warnings().begin(), checker.warnings().end());
  warn_of_uses(files);
}

void TemplateSet::load_builtins(TemplateChecker& checker) {
  for (const auto& builtin : builtin_templates()) {
    const TemplateFileName name{.name = std::string(builtin.name), .locale = {}, .part = builtin.part};
    const auto checked = checker.check(place_of(builtin), builtin.text, name, true);
    templates_[name.name][name.part].emplace(
        "", Part{TemplateProgram(place_of(builtin), checked.text, checked.tags), std::string(builtin.file),
                 true});
  }
}

void TemplateSet::load_files(const TemplateFiles& files, TemplateChecker& checker) {
  // In the order of the names of files, so that the first defect is the same each time.
  for (const auto& [file, text] : files.texts) {
    const auto name = parse_template_file(file);
    if (!name || name->part == MailPart::partial) continue;
    const bool knows_all = find_builtin(name->name, name->part) != nullptr;
    const auto checked = checker.check(files.path_of(file), text, *name, knows_all);
    if (const auto problem = problem_of_html_size(checked.size);
        name->part == MailPart::html && !problem.empty())
      warnings_.push_back(fmt::format("{}: {}", shown_text(files.path_of(file)), problem));
    templates_[name->name][name->part].insert_or_assign(
        name->locale, Part{TemplateProgram(file, checked.text, checked.tags), file, false});
  }
}

std::variant<RenderedMail, mail::Refusal> TemplateSet::render(const TemplateChoice& choice,
                                                              const TemplateData& scope,
                                                              std::size_t largest) const {
  const auto found = templates_.find(choice.name);
  if (found == templates_.end()) {
    const auto meant = nearest_word(choice.name, names());
    return mail::Refusal{fmt::format("there is no template {}{}", shown_text(choice.name),
                                     meant.empty() ? "" : fmt::format("; did you mean {}?", meant))};
  }
  const auto chain = locale_chain(choice.locale);
  const auto chosen = choose_all(found->second, chain);
  const auto lacks = [&](const char* what) {
    return mail::Refusal{fmt::format("the template {} has no {}{}", choice.name, what,
                                     chain.size() == 1 ? "" : fmt::format(" for {}", chain.front()))};
  };
  if (chosen.subject == nullptr) return lacks("subject");
  if (chosen.text == nullptr && chosen.html == nullptr) return lacks("text");
  RenderedMail mail;
  std::optional<mail::Refusal> refusal;
  const auto rendered = [&](const Part* used, MailPart part) -> std::optional<std::string> {
    if (used == nullptr || refusal) return std::nullopt;
    auto text = render_part(used->program, part, chain, scope, largest);
    if (auto* why = std::get_if<mail::Refusal>(&text)) {
      refusal = std::move(*why);
      return std::nullopt;
    }
    return std::get<std::string>(std::move(text));
  };
  mail.subject = rendered(chosen.subject, MailPart::subject).value_or("");
  mail.text = rendered(chosen.text, MailPart::text);
  mail.html = rendered(chosen.html, MailPart::html);
  if (refusal) return std::move(*refusal);
  for (const auto* part : {chosen.subject, chosen.text, chosen.html}) {
    if (part != nullptr) mail.files += (mail.files.empty() ? "" : ",") + part->file;
  }
  return mail;
}

std::variant<std::string, mail::Refusal> TemplateSet::render_part(const TemplateProgram& program,
                                                                  MailPart part, const Chain& chain,
                                                                  const TemplateData& scope,
                                                                  std::size_t largest) const {
  const auto partial = [&](const std::string& name) -> const TemplateProgram& {
    const auto& by_locale = partials_.at(name);
    for (const auto& locale : chain) {
      if (const auto found = by_locale.find(locale); found != by_locale.end()) return found->second;
    }
    throw std::logic_error("a partial has no file that suits a template: " + name);
  };
  const auto escape = part == MailPart::html ? TemplateProgram::Escape::html : TemplateProgram::Escape::none;
  return program.render(scope, {.escape = escape, .largest = largest, .partial = partial});
}

const TemplateSet::Part* TemplateSet::choose(const Parts& parts, MailPart part, const Chain& chain) {
  const auto found = parts.find(part);
  if (found == parts.end()) return nullptr;
  for (const auto& locale : chain) {
    if (const auto suited = found->second.find(locale); suited != found->second.end()) return &suited->second;
  }
  return nullptr;
}

TemplateSet::Chosen TemplateSet::choose_all(const Parts& parts, const Chain& chain) {
  Chosen chosen{choose(parts, MailPart::subject, chain), choose(parts, MailPart::text, chain),
                choose(parts, MailPart::html, chain)};
  const bool is_only_html_builtin =
      chosen.html != nullptr && chosen.html->is_builtin && chosen.text != nullptr && !chosen.text->is_builtin;
  if (is_only_html_builtin) chosen.html = nullptr;
  return chosen;
}

std::vector<std::string> TemplateSet::names() const {
  std::vector<std::string> all;
  for (const auto& [name, parts] : templates_)
    all.push_back(name);
  return all;
}

void TemplateSet::find_sources(const TemplateFiles& files, const TemplateNames& names) {
  std::set<std::string> listed;
  const auto add_file = [&](const std::string& file) {
    if (listed.insert(file).second)
      sources_.push_back({.file = file, .kind = TemplateSource::Kind::file, .path = files.path_of(file)});
  };
  for (const auto& builtin : builtin_templates()) {
    const std::string file(builtin.file);
    const auto chosen = choose_all(templates_.at(std::string(builtin.name)), locale_chain(""));
    if (has_file(files, file)) {
      add_file(file);
    } else {
      const bool is_none = builtin.part == MailPart::html && chosen.html == nullptr;
      sources_.push_back({.file = file,
                          .kind = is_none ? TemplateSource::Kind::none : TemplateSource::Kind::builtin,
                          .path = {}});
    }
  }
  for (const auto& [name, parts] : templates_) {
    for (const auto part : all_mail_parts) {
      const auto by_name = names.find(part);
      if (by_name == names.end()) continue;
      const auto by_locale = by_name->second.find(name);
      if (by_locale == by_name->second.end()) continue;
      for (const auto& [locale, file] : by_locale->second)
        add_file(file);
    }
  }
}

std::string problem_of_html_size(std::size_t size) {
  constexpr std::size_t shown_by_gmail = 102 * 1024;
  if (size <= shown_by_gmail) return {};
  return fmt::format("the HTML has {} kB: Gmail cuts it off after 102 kB, with what is at its end",
                     with_thousands(static_cast<std::int64_t>(size / 1024)));
}

TemplateSet load_templates(const std::string& directory) {
  return TemplateSet(directory.empty() ? TemplateFiles{} : read_template_files(directory));
}

}  // namespace mailroom::templates
