// The output of audit, as text and as lines of JSON, with sentences on what became of a token.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "audit/history.hpp"
#include "audit/stages.hpp"

namespace mailroom::cmd {

/// The status of a token, as a sentence without a full stop.
std::string status_text(const audit::TokenReport& report, Moment now);
/// The address that the token was mailed to; without a mail on record, that of its recipient or its account.
std::string token_address(const audit::TokenReport& report);
/// What became of a delivery, as a part of a sentence: `accepted once, 2026-11-22T20:59:55Z by
/// relay.example:25: 250 2.0.0 Ok: queued as 4Z1`.
std::string token_delivery_text(const audit::TokenDelivery& status, Moment now);
/// The status of a batch, likewise.
std::string batch_text(const queue::BatchRecord& batch);

/// `2h30m`: two units at most, since the seconds of a week do not matter.
std::string coarse(Moment::duration time);
/// `once`, `1,234 times`.
std::string times_text(std::int64_t count);

/// `probably as its account had the wrong status`: why a token was skipped.
std::string skip_reason_text(const std::string& reason, bool certain);
/// `in batch 12 by collect alice@host:123 at attempt 2`.
std::string where_and_actor(const queue::BatchRecord& batch, const std::string& collector);

/// How long tokens took between stages, then the slowest tokens.
std::string render_text(const audit::StageReport& report, std::size_t width);
/// One object.
std::string render_json(const audit::StageReport& report);

/// The maximum columns of a line; 0 for no limit.
using Width = std::size_t;

/// Returns a summary, then one line per entry of the timeline. Lines longer than `width` are wrapped,
/// indented.
std::string render_text(const audit::History& history, Width width);
std::string render_text(const audit::Overview& overview, Width width);

/// The name of an event: kind_text(), but `issued` for a token that was created.
std::string_view event_name(const feed::Event& event);
/// The rest of its line.
std::string event_details(const feed::Event& event);

/// A sentence on what was asked about, without a full stop.
struct HistorySentence {
  std::string text{};
  std::string trace{};  ///< the id of the trace of the token that it is about; or empty
};

/// Those of the batch, the account, the messages and the tokens, in this order.
std::vector<HistorySentence> history_sentences(const audit::History& history);

/// Returns one JSON object per line: the summary, then the entries of the timeline.
std::string render_json(const audit::History& history);
std::string render_json(const audit::Overview& overview);

}  // namespace mailroom::cmd
