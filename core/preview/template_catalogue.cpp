// Keeps the files in memory, by the templates that they belong to.

#include "preview/template_catalogue.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "templates/template_set.hpp"

namespace mailroom::preview {
namespace {

/// How long templates are checked before the next look at the directory.
constexpr Milliseconds longest_check{30};

}  // namespace

TemplateCatalogue::TemplateCatalogue(const std::string& directory) : directory_(directory) {
  for (const auto& builtin : templates::builtin_templates())
    templates_[std::string(builtin.name)];
  if (directory_.empty()) return;
  watch_.emplace(directory_);
  poll();
}

TemplateCatalogue::Content TemplateCatalogue::read(const std::string& file, bool is_example) const {
  const auto path =
      templates::TemplateFiles{.directory = directory_, .texts = {}, .ignored = {}}.path_of(file);
  try {
    return {.text = is_example ? templates::read_data_file(path) : templates::read_template_file(path),
            .error = {},
            .hint = {}};
  } catch (const Error& error) {
    return {.text = {}, .error = error.what(), .hint = error.hint()};
  }
}

PreviewChange TemplateCatalogue::poll() {
  if (!watch_) return PreviewChange::none;
  const auto changed = watch_->changes();
  bool is_other_list = false;
  for (const auto& file : changed)
    is_other_list = take(file) || is_other_list;
  {
    const std::lock_guard lock(mutex_);
    is_other_list = is_other_list || error_ != watch_->error();
    error_ = watch_->error();
  }
  if (is_other_list) return PreviewChange::list;
  if (!changed.empty()) return PreviewChange::mails;
  return check_some() ? PreviewChange::list : PreviewChange::none;
}

bool TemplateCatalogue::take(const std::string& file) {
  const auto part = templates::parse_template_file(file);
  const auto example = part ? std::nullopt : templates::parse_example_file(file);
  if (!part && !example) return false;
  auto content = read(file, example.has_value());
  const bool is_there = watch_->has(file);
  const std::lock_guard lock(mutex_);
  if (is_there) {
    contents_[file] = std::move(content);
  } else {
    contents_.erase(file);
  }
  if (example) {
    examples_[example->name].erase(example->locale);
    if (is_there) examples_[example->name].emplace(example->locale, file);
    return false;
  }
  if (part->part != templates::MailPart::partial) return put(*part, file, is_there);
  partials_.erase(file);
  if (is_there) partials_.insert(file);
  mark_all_unchecked();
  return false;
}

bool TemplateCatalogue::put(const templates::TemplateFileName& name, const std::string& file, bool is_there) {
  auto& known = templates_[name.name];
  unchecked_.insert(name.name);
  if (is_there) return known.files.emplace(file, name.locale).second;
  known.files.erase(file);
  if (known.files.empty() && templates::find_builtin(name.name, templates::MailPart::text) == nullptr) {
    templates_.erase(name.name);
    unchecked_.erase(name.name);
  }
  return true;
}

void TemplateCatalogue::mark_all_unchecked() {
  for (const auto& [name, known] : templates_)
    unchecked_.insert(name);
}

bool TemplateCatalogue::check_some() {
  const auto until = steady_now() + longest_check;
  bool is_other = false;
  while (!unchecked_.empty() && steady_now() < until) {
    const auto name = *unchecked_.begin();
    unchecked_.erase(unchecked_.begin());
    auto problem = problem_of(name);
    const std::lock_guard lock(mutex_);
    const auto known = templates_.find(name);
    if (known == templates_.end() || known->second.problem == problem) continue;
    known->second.problem = std::move(problem);
    is_other = true;
  }
  return is_other;
}

std::string TemplateCatalogue::problem_of(const std::string& name) const {
  try {
    const templates::TemplateSet tried(files_of(name));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<TemplateCatalogue::Entry> TemplateCatalogue::entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  for (const auto& [name, known] : templates_) {
    std::set<std::string> locales;
    if (templates::find_builtin(name, templates::MailPart::text) != nullptr) locales.insert("");
    for (const auto& [file, locale] : known.files)
      locales.insert(locale);
    entries.push_back({.name = name, .locales = {locales.begin(), locales.end()}, .problem = known.problem});
  }
  return entries;
}

void TemplateCatalogue::add(templates::TemplateFiles& files, const std::string& file,
                            const Content& content) {
  if (!content.error.empty()) throw Error(ExitCode::configuration, content.error, content.hint);
  files.texts.emplace(file, content.text);
}

templates::TemplateFiles TemplateCatalogue::files_of(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (!error_.empty())
    throw Error(ExitCode::configuration,
                fmt::format("cannot read the template directory {}: {}", shown_text(directory_), error_));
  templates::TemplateFiles files{.directory = directory_, .texts = {}, .ignored = {}};
  const auto known = templates_.find(name);
  if (known != templates_.end()) {
    for (const auto& [file, locale] : known->second.files)
      add(files, file, contents_.at(file));
  }
  for (const auto& file : partials_)
    add(files, file, contents_.at(file));
  return files;
}

std::optional<TemplateCatalogue::Example> TemplateCatalogue::example_of(std::string_view name,
                                                                        std::string_view locale) const {
  const std::lock_guard lock(mutex_);
  const auto files = examples_.find(name);
  if (files == examples_.end()) return std::nullopt;
  for (const auto& suited : templates::locale_chain(locale)) {
    const auto file = files->second.find(suited);
    if (file == files->second.end()) continue;
    const auto& content = contents_.at(file->second);
    if (!content.error.empty()) throw Error(ExitCode::configuration, content.error, content.hint);
    return Example{.file = file->second, .text = content.text};
  }
  return std::nullopt;
}

}  // namespace mailroom::preview
