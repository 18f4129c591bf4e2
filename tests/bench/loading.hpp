#pragma once

#include <functional>

#include "db/connection.hpp"

namespace mailroom::bench {

/// Loads rows as they are: the session fires no triggers from now on.
void without_triggers(db::Connection& connection);

/// Drops the indexes of tokens and rebuilds them after `load`, which takes half as long as maintaining them.
void with_indexes_dropped(db::Connection& connection, const std::function<void()>& load);

/// Sets the sequences after what was loaded, vacuums and checkpoints.
void finish_loading(db::Connection& connection);

}  // namespace mailroom::bench
