#pragma once

#include <vector>

#include "db/connection.hpp"
#include "feed/event_filter.hpp"

namespace mailroom {

/// What `keys` stand for, in their order, as the database has it now; without those whose rows are gone
/// meanwhile or that `filter` does not want. A statement or two for each kind.
std::vector<Event> look_up(Connection& connection, const std::vector<EventKey>& keys,
                           const EventFilter& filter);

}  // namespace mailroom
