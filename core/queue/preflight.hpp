#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// Checks what the proof that no token is lost rests on: the trigger that gives out token ids is there and
/// enabled, and the sequence hands out one id at a time. Throws Error with ExitCode::schema and the statement
/// that mends it.
void check_queue_foundations(Connection& connection);

}  // namespace mailroom
