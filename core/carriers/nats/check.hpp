// How safe a batch is that JetStream has acknowledged: the judgements of doctor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "carriers/carriers.hpp"
#include "carriers/nats/connection.hpp"

namespace mailroom {

/// When a server writes to disk.
struct NatsSync {
  bool always = false;  ///< before they acknowledge
  Milliseconds interval{};
};

/// What is wrong with a stream that exists; empty for nothing.
std::vector<SinkFinding> judge_nats_stream(const NatsStream& stream, const Settings& settings);

/// What an acknowledgement is worth, of `servers` servers, the first of this version, some of which have
/// shown when they write.
SinkFinding judge_nats_sync(const std::string& version, const std::vector<NatsSync>& syncs,
                            std::size_t servers);

}  // namespace mailroom
