#pragma once

#include <cstdint>
#include <string>

#include "audit/history.hpp"

namespace mailroom {

/// The status of a token, as a sentence without a full stop. `now` is in seconds since 1970.
std::string status_text(const TokenReport& report, std::int64_t now);
/// The status of a batch, likewise.
std::string batch_text(const BatchRecord& batch);

/// The name of an event: `emitted`.
std::string what_text(const TimelineEvent& event);
/// The rest of an event's line in the timeline.
std::string details_text(const TimelineEvent& event);

/// `3 tokens`.
std::string tokens_text(std::int64_t count);
/// `1 expired, 2 consumed`; empty when nothing was skipped.
std::string skipped_text(const BatchRecord& batch);
/// `probably as its account had the wrong status`: why a token was skipped.
std::string skip_reason_text(const std::string& reason, bool certain);
/// `in batch 12 by mailroom collect@host:123 at attempt 2`.
std::string where_and_actor(const BatchRecord& batch);

}  // namespace mailroom
