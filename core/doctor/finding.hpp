#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace mailroom {

enum class CheckVerdict { ok, warning, failure, not_checked };

/// What one check saw, or one of several things.
struct Finding {
  std::string check;  ///< the name of the check; whoever runs it fills it in
  CheckVerdict verdict = CheckVerdict::ok;
  std::string reason;             ///< in one line; never holds a secret
  std::vector<std::string> mend;  ///< commands in their order; SQL ends with a semicolon, the rest is shell
  std::string hint;               ///< what to do where no command does it, or what to know before
};

using Findings = std::vector<Finding>;

Finding fine(std::string reason);
Finding warning(std::string reason, std::vector<std::string> mend, std::string hint = {});
Finding failure(std::string reason, std::vector<std::string> mend, std::string hint = {});
Finding not_checked(std::string reason);

/// `all`, or the one finding `fine(reason)` when there is nothing to complain of.
Findings or_fine(Findings all, const std::string& reason);

/// `ok`, `warning`, `failure` or `not checked`.
const char* verdict_word(CheckVerdict verdict);

/// The exit code of all: 3 when the configuration or a key has failed, else 4 when the database has, else 8
/// when anything has, else 0.
ExitCode judge(const Findings& findings);

}  // namespace mailroom
