// The step from the answer to a message to what is recorded of each of its tokens.
#pragma once

#include <string>
#include <vector>

#include "delivery/composer.hpp"

namespace mailroom {

/// What `answer` says of one of the tokens of its message: its own verdict, or that of the message.
Answer answer_to(const Answer& answer, const ComposedToken& token);

/// The outcome of a token from the answer to it. `may_be_taken`: an earlier try within this batch was not
/// answered.
TokenOutcome outcome_of(const Answer& answer, const ComposedToken& token, bool may_be_taken,
                        const DeliveryPolicy& policy, double jitter);

/// A reply as it is recorded: printable, at most 200 bytes; a note instead of it if it repeats a part of one
/// of the tokens.
std::string shown_reply(const std::string& reply, const std::vector<ComposedToken>& tokens);

}  // namespace mailroom
