#pragma once

#include <string>

#include "base/error.hpp"

namespace mailroom {

enum class Retry { none, same_session, new_session };

/// How to retry after an error of the database. A server that refuses writes is not the primary (yet): during
/// a failover a new session may reach the primary.
Retry retry_for(const Error& error);

/// True if another session holds the advisory lock of this session's pid. A new session has another pid.
bool is_pid_locked(const Error& error);

/// Message and hint on one line.
std::string reason_of(const Error& error);

}  // namespace mailroom
