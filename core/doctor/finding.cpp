// Sums findings up: a word for each, and one exit code for all.

#include "doctor/finding.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#include "base/printable.hpp"
#include "base/wording.hpp"
#include "schema/migration.hpp"

namespace mailroom::doctor {
namespace {

bool is_readable_by_all(const std::string& path) {
  std::error_code missing;
  const auto status = std::filesystem::status(path, missing);
  return !missing &&
         (status.permissions() & std::filesystem::perms::others_read) != std::filesystem::perms::none;
}

/// `set send.from` as `set profiles.acme.from`, where the profile has a sender of its own.
std::string with_names_of_profile(std::string text, const config::Settings& settings) {
  for (const auto& value : settings.values) {
    if (value.profile.empty()) continue;
    const auto name = value.name();
    for (auto at = text.find(value.key); at != std::string::npos; at = text.find(value.key, at + name.size()))
      text.replace(at, value.key.size(), name);
  }
  return text;
}

}  // namespace

status::Fix make_functions() {
  return {status::FixKind::make_functions,
          fmt::format("mailroom migrate goto {}", schema::embedded_migrations().back().version)};
}

Findings or_fine(Findings all, const std::string& reason) {
  if (all.empty()) all.push_back(fine(reason));
  return all;
}

const char* verdict_word(CheckVerdict verdict) {
  constexpr std::array<const char*, 4> words{"ok", "warning", "failure", "not checked"};
  return words.at(static_cast<std::size_t>(verdict));
}

ExitCode judge(const Findings& findings) {
  std::set<std::string> failed;
  for (const auto& finding : findings) {
    if (finding.verdict == CheckVerdict::failure) failed.insert(finding.check);
  }
  for (const auto* check : {"configuration", "key", "previous keys", "templates"}) {
    if (failed.count(check) > 0) return ExitCode::configuration;
  }
  if (failed.count("database") > 0) return ExitCode::database;
  return failed.empty() ? ExitCode::done : ExitCode::unusable;
}

Findings judge_permissions(const std::string& secret, const std::string& path, bool allowed) {
  if (!is_readable_by_all(path)) return {};
  const auto reason = fmt::format("everyone can read the {} file {}", secret, path);
  const status::Fix fix(status::FixKind::protect_file, "chmod 640 " + shell_word(path));
  if (!allowed) return {failure(reason, {fix})};
  return {warning(reason + ", as signing.allow_readable_key allows", {fix})};
}

Findings of_profile(const config::Settings& settings, const std::string& profile,
                    const std::function<Findings(const config::Settings& settings)>& look) {
  const auto changed = config::with_profile(settings, profile);
  Findings findings;
  try {
    findings = look(changed);
  } catch (const Error& error) {
    // The other profiles are checked all the same.
    if (error.code() != ExitCode::configuration) throw;
    findings = {failure(error.what(), {}, error.hint())};
  }
  for (auto& finding : findings) {
    finding.reason = fmt::format("profile {}: {}", shown_text(profile), finding.reason);
    finding.hint = with_names_of_profile(finding.hint, changed);
  }
  return findings;
}

bool any_failure(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.verdict == CheckVerdict::failure; });
}

}  // namespace mailroom::doctor
