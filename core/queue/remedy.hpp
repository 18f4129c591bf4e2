#pragma once

#include <string>

#include "base/error.hpp"

namespace mailroom {

enum class Remedy { none, same_session, new_session };

/// What may mend an error of the database when it is tried again. A server that takes no writes is not the
/// primary, or not yet: in a failover the next connection finds the one that is.
Remedy remedy_for(const Error& error);

/// Somebody else holds the lock of the session's pid. The next session has another pid.
bool is_pid_locked(const Error& error);

/// Message and hint, in one line.
std::string reason_of(const Error& error);

}  // namespace mailroom
