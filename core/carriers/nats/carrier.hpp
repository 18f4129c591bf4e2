// NATS as a kind of sink: make it, check it, name its library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carriers/carriers.hpp"

namespace mailroom {

/// Publishes lines to a JetStream stream, each with its message id. Connects; throws Error(configuration) if
/// that shows that a setting is wrong here or there, and not if no server can be reached.
std::unique_ptr<Carrier> make_nats_carrier(const CarrierSetup& setup);

/// Looks at the stream and its settings, and publishes nothing.
std::vector<SinkFinding> check_nats(const Settings& settings);

/// `libnats 3.4.1`
std::string nats_library();

}  // namespace mailroom
