// Suggests the queue that was meant where the database has none of that name.
#pragma once

#include "cmd/terminal/context.hpp"

namespace mailroom {

/// `error`; that of an unknown queue with a hint at the queues that exist, or at the nearest of them. Opens a
/// session for that; without one the hint stays as it is.
Error explained_unknown_queue(const DatabaseError& error, Context& context);

}  // namespace mailroom
