#pragma once

#include <functional>

#include "db/connection.hpp"

namespace mailroom::bench {

/// Loads rows as they are: the session fires no triggers from now on.
void without_triggers(Connection& connection);

/// Drops the indexes of tokens and rebuilds them after `load`, which takes half as long as maintaining them.
void with_indexes_dropped(Connection& connection, const std::function<void()>& load);

/// Sets the sequences after what was loaded, vacuums and checkpoints.
void finish_loading(Connection& connection);

}  // namespace mailroom::bench
