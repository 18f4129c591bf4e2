// The last check before a session claims: could this schema lose a token?
#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// Checks the preconditions of the proof that no token is lost: the trigger that assigns token ids exists and
/// is enabled, and the sequence assigns one id at a time. Throws Error(schema) with the statement that fixes
/// it as the hint.
void check_queue_preconditions(Connection& connection);

}  // namespace mailroom
