// Sums findings up: a word for each, and one exit code for all.

#include "doctor/finding.hpp"

#include <array>
#include <set>

namespace mailroom {

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

}  // namespace mailroom
