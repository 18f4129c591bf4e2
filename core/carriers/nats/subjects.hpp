// The subjects of a queue's lines, for the publisher and for the checks of the stream.
#pragma once

#include <string>
#include <vector>

#include "carriers/nats/connection.hpp"
#include "config/settings.hpp"

namespace mailroom {

/// The subject of a line: `pattern`, with the queue as nats_subject_part().
std::string nats_subject(const std::string& pattern, const std::string& queue, const std::string& action);

/// Those of the subjects of a queue's lines that the stream takes.
std::vector<std::string> subjects_taken(const NatsStream& stream, const std::string& pattern,
                                        const std::string& queue);
/// Those that it does not take.
std::vector<std::string> subjects_refused(const NatsStream& stream, const std::string& pattern,
                                          const std::string& queue);

/// How to make the stream that the settings name.
std::string nats_stream_hint(const Settings& settings);

}  // namespace mailroom
