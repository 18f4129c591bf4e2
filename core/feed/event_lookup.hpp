#pragma once

#include <vector>

#include "db/connection.hpp"
#include "feed/event_filter.hpp"

namespace mailroom {

/// Returns the events of `keys`, in their order, with the present values of their rows. Omits events whose
/// rows have been deleted, and events that `filter` excludes. Runs one or two statements for each table.
std::vector<Event> look_up(Connection& connection, const std::vector<EventKey>& keys,
                           const EventFilter& filter);

}  // namespace mailroom
