#include "doctor/finding.hpp"

#include <set>

namespace mailroom {

Finding fine(std::string reason) {
  return {{}, CheckVerdict::ok, std::move(reason), {}, {}};
}

Finding warning(std::string reason, std::vector<std::string> fix, std::string hint) {
  return {{}, CheckVerdict::warning, std::move(reason), std::move(fix), std::move(hint)};
}

Finding failure(std::string reason, std::vector<std::string> fix, std::string hint) {
  return {{}, CheckVerdict::failure, std::move(reason), std::move(fix), std::move(hint)};
}

Finding not_checked(std::string reason) {
  return {{}, CheckVerdict::not_checked, std::move(reason), {}, {}};
}

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
