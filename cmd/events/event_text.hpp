// The text and the JSON of events and their details.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "feed/event.hpp"

namespace mailroom::cmd {

// What tail and audit show alike.

/// `2026-11-21T09:06:25Z`, with milliseconds where they are known.
std::string time_text(const feed::Event& event);
/// time_text(); null outside the years 0000 to 9999.
nlohmann::ordered_json time_json(const feed::Event& event);
/// The subject of an event: `token 51`, `batch 7`, `account 17`, `queue mailroom`, or `database`.
std::string subject_text(const feed::Event& event);
/// A batch's tokens, `41-45,47`: all, or those that match the filter. Empty for other events.
std::string ids_text(const feed::Event& event);
/// The ids one by one.
nlohmann::ordered_json ids_json(const std::vector<selection::IdRange>& ranges);

/// `1 expired, 2 wrong status`, with `space` within a reason; empty when nothing was skipped.
std::string skipped_text(const queue::SkipCounts& counts, char space = ' ');
nlohmann::ordered_json skipped_json(const queue::SkipCounts& counts);
/// What the relay said: `250 2.0.0 Ok: queued as 4Z1`, or the reason; empty if there is neither.
std::string answer_text(const feed::DeliveryAttempt& delivery);
/// `accepted by relay.example:25: 250 2.0.0 Ok: queued as 4Z1`.
std::string delivery_text(const feed::DeliveryAttempt& delivery);
/// Sets `outcome`, `sink`, `code` and `reply`, null where there is none.
void add_delivery_outcome(nlohmann::ordered_json& object, const feed::DeliveryAttempt& delivery);

/// A collector's name without that of the program: `collect alice@host:77`.
std::string collector_name(const queue::BatchRecord& batch);

/// The integer `details[key]`, or 0.
std::int64_t number_in(const nlohmann::json& details, const char* key);
/// What a prune deleted: `1,200 tokens and 3 batch records`, or `…, 3 batch records and 5 delivery records`.
std::string pruned_text(const nlohmann::json& details);

/// True for what consumers record of themselves.
bool is_of_consumer(feed::EventKind kind);
/// What a consumer took at a reload, or what it found in the database.
std::string consumer_text(feed::EventKind kind, const nlohmann::json& details);

/// True for a change of a queue, of a budget that queues share, or of an action.
bool is_queue_change(feed::EventKind kind);
/// What such a change changed: `priority from 0 to 10`; empty for a pause and its end.
std::string queue_change_text(const feed::Operation& operation, const nlohmann::json& details);

/// Returns the event with email and login masked by masked_address(), also where a relay repeats them, and
/// any other address in its reply.
feed::Event masked(feed::Event event);

}  // namespace mailroom::cmd
