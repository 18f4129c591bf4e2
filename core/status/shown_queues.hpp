// Which queues a command is about where nobody has named one.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// True if collect.queue is set, by a flag or otherwise.
bool names_queues(const Settings& settings);

/// The queues that a command shows: those of collect.queue or, if it is not set, all of the database, by
/// priority and name. Not empty: a database without a queue has the default of collect.queue, which is then
/// unknown.
std::vector<std::string> shown_queues(Connection& connection, const Settings& settings);

}  // namespace mailroom
