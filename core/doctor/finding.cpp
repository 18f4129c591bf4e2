#include "doctor/finding.hpp"

#include <algorithm>

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
  const auto fails = [&](auto&&... checks) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.verdict == CheckVerdict::failure && (... || (finding.check == checks));
    });
  };
  if (fails("configuration", "key", "previous keys")) return ExitCode::configuration;
  if (fails("database")) return ExitCode::database;
  const bool any = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict == CheckVerdict::failure;
  });
  return any ? ExitCode::unusable : ExitCode::done;
}

}  // namespace mailroom
