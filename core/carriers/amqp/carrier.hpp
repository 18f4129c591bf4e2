// RabbitMQ as a kind of sink: make it, check it, name its library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carriers/amqp/connection.hpp"
#include "carriers/carriers.hpp"
#include "config/settings.hpp"

namespace mailroom::amqp {

/// Looks for the exchange, or for the queues that the default exchange leads to; compares nothing.
std::vector<carriers::SinkFinding> check_amqp_names(AmqpConnection& connection,
                                                    const config::Settings& settings,
                                                    const std::string& vhost);

/// Publishes lines to an exchange of RabbitMQ, which confirms each.
std::unique_ptr<delivery::Carrier> make_amqp_carrier(const carriers::CarrierSetup& setup);

/// Looks at exchange and queue, and publishes nothing.
std::vector<carriers::SinkFinding> check_amqp(const config::Settings& settings);

/// `librabbitmq 0.11.0`
std::string amqp_library();

}  // namespace mailroom::amqp
