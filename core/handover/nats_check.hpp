#pragma once

#include <optional>
#include <string>
#include <vector>

#include "handover/carriers.hpp"
#include "handover/nats_connection.hpp"

namespace mailroom {

/// When servers write to disk.
struct NatsSync {
  bool always = false;  ///< before they acknowledge
  Milliseconds interval{};
};

/// What is wrong with a stream that exists; empty for nothing.
std::vector<SinkFinding> judge_nats_stream(const NatsStream& stream, const Settings& settings);

/// What an acknowledgement of a server of this version is worth.
SinkFinding judge_nats_sync(const std::string& version, const std::optional<NatsSync>& sync);

}  // namespace mailroom
