// Asks NATS servers for what no client learns, for doctor.
#pragma once

#include <string>

#include "carriers/broker_url.hpp"

namespace mailroom {

/// The first line that a NATS server says to whoever connects: its version and more, in JSON. Empty if it
/// says nothing within 2 s.
std::string read_nats_greeting(const ServerAddress& server);

/// What an HTTP server answers to GET `path`, without its header. Empty if there is no answer within 2 s.
std::string read_monitor_page(const ServerAddress& server, const std::string& path);

}  // namespace mailroom
