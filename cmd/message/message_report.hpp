// The text and the JSON of messages, for message and audit.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "messages/message_record.hpp"

namespace mailroom::cmd {

/// `accepted`, or `2 accepted, 1 deferred`.
std::string states_text(const messages::MessageSummary& message);
/// `, 'Hello' to ada@example.org +2`: the template, or else the subject, and the first recipient.
std::string content_and_recipient(const messages::MessageSummary& message);

/// `now` is the server's clock.
std::string render_message_list(const std::vector<messages::MessageSummary>& messages, Moment now,
                                std::size_t width);
std::string render_message(const messages::MessageRecord& message, std::size_t width);

nlohmann::ordered_json summary_json(const messages::MessageSummary& message);
nlohmann::ordered_json message_json(const messages::MessageRecord& message);

}  // namespace mailroom::cmd
