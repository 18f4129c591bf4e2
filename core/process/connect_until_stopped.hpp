// Lets a stop request end a command that waits for its connection to the database.
#pragma once

#include <memory>
#include <string>

#include "db/connection.hpp"
#include "process/stop_signal.hpp"

namespace mailroom {

/// Connects as Connection() does. Throws ConnectionLost when a stop is requested meanwhile: nothing
/// interrupts libpq, so a thread is left to it, for which the process does not wait at its end. After a stop
/// request this is Connection(): what is left to do may need a session.
std::unique_ptr<Connection> connect_until_stopped(const StopSignal& signal, const DatabaseTarget& target,
                                                  const std::string& purpose);

}  // namespace mailroom
