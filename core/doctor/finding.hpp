// What a check reports: how bad it is, why, and what fixes it; findings of status, carriers and files of
// secrets as such.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "carriers/carriers.hpp"
#include "health/queue_health.hpp"

namespace mailroom::doctor {

enum class CheckVerdict { ok, warning, failure, not_checked };

/// A result of a check; a check may have several.
struct Finding {
  std::string check;  ///< the name of the check; examine() sets it
  CheckVerdict verdict = CheckVerdict::ok;
  std::string reason;            ///< on one line; never contains a secret
  std::vector<status::Fix> fix;  ///< in order
  std::string hint;              ///< what to do if there is no command, or what to know before
};

using Findings = std::vector<Finding>;

inline Finding fine(std::string reason) {
  return {{}, CheckVerdict::ok, std::move(reason), {}, {}};
}
inline Finding warning(std::string reason, std::vector<status::Fix> fix, std::string hint = {}) {
  return {{}, CheckVerdict::warning, std::move(reason), std::move(fix), std::move(hint)};
}
inline Finding failure(std::string reason, std::vector<status::Fix> fix, std::string hint = {}) {
  return {{}, CheckVerdict::failure, std::move(reason), std::move(fix), std::move(hint)};
}
inline Finding not_checked(std::string reason) {
  return {{}, CheckVerdict::not_checked, std::move(reason), {}, {}};
}

inline status::Fix migrate_fix() {
  return {status::FixKind::migrate, "mailroom migrate"};
}

/// Makes all functions of the schema anew.
status::Fix make_functions();

/// Returns `all`, or the single finding `fine(reason)` if `all` is empty.
Findings or_fine(Findings all, const std::string& reason);

/// `ok`, `warning`, `failure` or `not checked`.
const char* verdict_word(CheckVerdict verdict);

/// The exit code: 3 if the configuration, a key or the templates failed, else 4 if the database failed, else
/// 8 if anything failed, else 0.
ExitCode judge(const Findings& findings);

inline Finding finding_of(const health::QueueFinding& found) {
  std::vector<status::Fix> commands;
  if (!found.fix.empty()) {
    for (const auto command : split(found.fix, '\n'))
      commands.emplace_back(found.fix.kind(), std::string(command));
  }
  return found.severity == health::Severity::failure ? failure(found.text, std::move(commands), found.hint)
                                                     : warning(found.text, std::move(commands), found.hint);
}

Finding finding_of(const carriers::SinkFinding& found);

/// What `look` finds out about the settings of a profile, with its name, and its own keys in the hints. An
/// error is a finding.
Findings of_profile(const config::Settings& settings, const std::string& profile,
                    const std::function<Findings(const config::Settings& settings)>& look);

/// A file with a secret, such as a `key`, that everyone can read is a failure, or a warning if
/// signing.allow_readable_key is set (`allowed`).
Findings judge_permissions(const std::string& secret, const std::string& path, bool allowed);

bool any_failure(const Findings& findings);

}  // namespace mailroom::doctor
