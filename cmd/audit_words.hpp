#pragma once

#include <cstdint>
#include <string>

#include "audit/history.hpp"

namespace mailroom {

/// What became of a token, in a sentence without a full stop. `now` is in seconds since 1970.
std::string fate_text(const TokenStory& story, std::int64_t now);
/// What became of a batch, in the same way.
std::string batch_text(const BatchRecord& batch);

/// What happened, in a word or two: `handed on`.
std::string what_text(const Happening& happening);
/// The rest of a line of the timeline.
std::string details_text(const Happening& happening);

/// `3 tokens`.
std::string tokens_text(std::int64_t count);
/// `1 expired, 2 consumed`; empty when nothing was passed over.
std::string skipped_text(const BatchRecord& batch);
/// `probably as its account had the wrong status`: why a token was passed over.
std::string passing_reason_text(const std::string& reason, bool certain);
/// `in batch 12 by mailroom collect@host:123 at attempt 2`.
std::string where_and_who(const BatchRecord& batch);

}  // namespace mailroom
