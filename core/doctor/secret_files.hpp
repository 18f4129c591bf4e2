// What checks of keys, passwords and access tokens have in common: who may read the file.
#pragma once

#include <string>

#include "doctor/finding.hpp"

namespace mailroom {

/// A file with a secret, such as a `key`, that everyone can read is a failure, or a warning if
/// signing.allow_readable_key is set (`allowed`).
Findings judge_permissions(const std::string& secret, const std::string& path, bool allowed);

bool any_failure(const Findings& findings);

}  // namespace mailroom
