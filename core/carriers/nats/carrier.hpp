// NATS as a kind of sink: make it, check it, name its library.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carriers/broker.hpp"
#include "carriers/carriers.hpp"
#include "carriers/nats/connection.hpp"

namespace mailroom::nats {

/// The first line that a NATS server says to whoever connects: its version and more, in JSON. Empty if it
/// says nothing within 2 s.
std::string read_nats_greeting(const config::ServerAddress& server);

/// What an HTTP server answers to GET `path`, without its header. Empty if there is no answer within 2 s.
std::string read_monitor_page(const config::ServerAddress& server, const std::string& path);

/// When a server writes to disk.
struct NatsSync {
  bool always = false;  ///< before they acknowledge
  Milliseconds interval{};
};

/// What is wrong with a stream that exists; empty for nothing.
std::vector<carriers::SinkFinding> judge_nats_stream(const NatsStream& stream,
                                                     const config::Settings& settings);

/// What an acknowledgement is worth, of `servers` servers, the first of this version, some of which have
/// shown when they write.
carriers::SinkFinding judge_nats_sync(const std::string& version, const std::vector<NatsSync>& syncs,
                                      std::size_t servers);

/// Publishes lines to a JetStream stream, each with its message id.
std::unique_ptr<delivery::Carrier> make_nats_carrier(const carriers::CarrierSetup& setup);

/// Looks at the stream and its settings, and publishes nothing.
std::vector<carriers::SinkFinding> check_nats(const config::Settings& settings);

/// `libnats 3.4.1`
std::string nats_library();

}  // namespace mailroom::nats
