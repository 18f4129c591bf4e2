// The sentences in which audit says what became of a token or a batch.
#pragma once

#include <string>

#include "audit/history.hpp"

namespace mailroom {

/// The status of a token, as a sentence without a full stop.
std::string status_text(const TokenReport& report, Moment now);
/// What became of a delivery, as a part of a sentence: `accepted once, 2026-11-22T20:59:55Z by
/// relay.example:25: 250 2.0.0 Ok: queued as 4Z1`.
std::string token_delivery_text(const TokenDelivery& status, Moment now);
/// The status of a batch, likewise.
std::string batch_text(const BatchRecord& batch);

/// `2h30m`: two units at most, since the seconds of a week do not matter.
std::string coarse(Moment::duration time);
/// `once`, `1,234 times`.
std::string times_text(std::int64_t count);

/// `probably as its account had the wrong status`: why a token was skipped.
std::string skip_reason_text(const std::string& reason, bool certain);
/// `in batch 12 by collect@host:123 at attempt 2`.
std::string where_and_actor(const BatchRecord& batch, const std::string& collector);

}  // namespace mailroom
