// Do the exchange and the queues of the configuration exist? For the start of collect and for doctor.
#pragma once

#include <string>
#include <vector>

#include "carriers/amqp/connection.hpp"
#include "carriers/carriers.hpp"
#include "config/settings.hpp"

namespace mailroom {

/// Looks for the exchange, or for the queues that the default exchange leads to; compares nothing.
std::vector<SinkFinding> check_amqp_names(AmqpConnection& connection, const Settings& settings,
                                          const std::string& vhost);

}  // namespace mailroom
