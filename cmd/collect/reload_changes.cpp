// Compares digests, so that no content of a file stays in memory from one reload to the next.

#include "cmd/collect/reload_changes.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "cmd/config/shown_setting.hpp"
#include "config/key_table.hpp"
#include "crypto/digest.hpp"
#include "templates/template_files.hpp"

namespace mailroom::cmd {
namespace {

using Files = std::map<std::string, crypto::Digest>;

bool is_regular(const std::string& path) {
  std::error_code unreadable;
  return std::filesystem::is_regular_file(path, unreadable);
}

/// A secret is wiped after it was read.
void add_secret(const std::string& path, Files& files) {
  if (path.empty() || !is_regular(secret_path(path))) return;
  try {
    const SecretFile file(path, {.secret = "secret", .named_by = {}, .allowed_by = {}, .content = {}}, true);
    files[path] = crypto::sha256({file.text()});
  } catch (const Error&) {
    // Whatever needs the file reports it, with its setting.
    files.erase(path);
  }
}

void add_plain(const std::string& path, Files& files) {
  if (path.empty() || !is_regular(path)) return;
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  files[path] = crypto::sha256({text});
}

void add_templates(const std::string& directory, Files& files) {
  if (directory.empty()) return;
  for (const auto& [name, text] : templates::read_template_files(directory).texts)
    files[directory + "/" + name] = crypto::sha256({text});
}

/// The files that settings of the sections name: `database` and what takes the messages.
void add_files(const std::vector<config::SettingValue>& values, std::string_view section,
               FileContents& contents) {
  for (const auto& value : values) {
    const auto& entry = *config::find_key(value.key);
    if (!value.key.starts_with("database.") && !value.key.starts_with(section)) continue;
    for (const auto& path : config::files_of(entry, value)) {
      auto& files = contents[std::string(entry.content)];
      entry.is_secret_file ? add_secret(path, files) : add_plain(path, files);
    }
  }
}

/// By name, as a log may show them.
std::map<std::string, std::string> profile_values(const config::Settings& settings) {
  std::map<std::string, std::string> values;
  for (const auto& profile : settings.profiles) {
    for (const auto& value : profile.values) {
      if (value.origin.kind != config::OriginKind::default_value) values[value.name()] = shown(value);
    }
  }
  return values;
}

std::int64_t count_changed(const Files& before, const Files& after) {
  std::set<std::string> names;
  for (const auto* files : {&before, &after}) {
    for (const auto& [name, digest] : *files)
      names.insert(name);
  }
  return std::count_if(names.begin(), names.end(), [&](const auto& name) {
    const auto old = before.find(name);
    const auto fresh = after.find(name);
    return old == before.end() || fresh == after.end() || old->second != fresh->second;
  });
}

/// The names of the files that were there before, without their directories.
std::vector<std::string> vanished(const Files& before, const Files& after) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : before) {
    if (!after.contains(name)) names.push_back(std::filesystem::path(name).filename().string());
  }
  return names;
}

/// `2 changed, and receipt.de.txt is gone`: whoever read that file's locale gets another one.
std::string templates_text(std::int64_t changed, const std::vector<std::string>& gone) {
  auto text = fmt::format("{} changed", changed);
  if (!gone.empty())
    text += fmt::format(", and {} {} gone", joined(gone, ", "), gone.size() == 1 ? "is" : "are");
  return text;
}

}  // namespace

FileContents read_contents(const config::Settings& settings, bool mails) {
  FileContents contents;
  add_files(settings.values, mails ? "send." : "sink.", contents);
  if (!mails) return contents;
  // Profiles share directories.
  std::set<std::string> directories{settings.send.templates};
  for (const auto& profile : settings.profiles) {
    add_files(profile.values, "send.", contents);
    directories.insert(profile.send.templates);
  }
  for (const auto& directory : directories)
    add_templates(directory, contents["templates"]);
  return contents;
}

std::vector<consumer::SettingChange> changes_between(const config::Settings& before,
                                                     const config::Settings& after) {
  std::vector<consumer::SettingChange> changes;
  for (const auto& value : after.values) {
    const auto& old = config::setting_of(before, value.key);
    if (old.text == value.text) continue;
    changes.push_back({value.key, shown(old), shown(value), config::find_key(value.key)->takes_effect});
  }
  const auto old = profile_values(before);
  const auto fresh = profile_values(after);
  for (const auto& [name, text] : old) {
    if (!fresh.contains(name)) changes.push_back({name, text, "", true});
  }
  for (const auto& [name, text] : fresh) {
    const auto found = old.find(name);
    if (found == old.end() || found->second != text)
      changes.push_back({name, found == old.end() ? "" : found->second, text, true});
  }
  return changes;
}

std::vector<consumer::SettingChange> changes_between(const FileContents& before, const FileContents& after) {
  std::vector<consumer::SettingChange> changes;
  auto kinds = before;
  kinds.insert(after.begin(), after.end());
  for (const auto& [kind, files] : kinds) {
    const auto of = [&kind = kind](const FileContents& contents) {
      const auto found = contents.find(kind);
      return found == contents.end() ? Files() : found->second;
    };
    const auto changed = count_changed(of(before), of(after));
    if (changed == 0) continue;
    consumer::SettingChange change;
    change.name = kind;
    change.content =
        kind == "templates" ? templates_text(changed, vanished(of(before), of(after))) : "changed";
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace mailroom::cmd
