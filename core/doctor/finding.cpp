#include "doctor/finding.hpp"

#include <set>

namespace mailroom {

Findings or_fine(Findings all, const std::string& reason) {
  if (all.empty()) all.push_back(fine(reason));
  return all;
}

const char* verdict_word(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::ok:
      return "ok";
    case CheckVerdict::warning:
      return "warning";
    case CheckVerdict::failure:
      return "failure";
    case CheckVerdict::not_checked:
      break;
  }
  return "not checked";
}

ExitCode judge(const Findings& findings) {
  std::set<std::string> failed;
  for (const auto& finding : findings) {
    if (finding.verdict == CheckVerdict::failure) failed.insert(finding.check);
  }
  for (const auto* check : {"configuration", "key", "previous keys"}) {
    if (failed.count(check) > 0) return ExitCode::configuration;
  }
  if (failed.count("database") > 0) return ExitCode::database;
  return failed.empty() ? ExitCode::done : ExitCode::unusable;
}

}  // namespace mailroom
