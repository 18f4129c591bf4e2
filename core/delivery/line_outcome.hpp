// The step from a carrier's verdict on a line to the recorded outcome of each token.
#pragma once

#include <string>
#include <string_view>

#include "delivery/carried_line.hpp"

namespace mailroom {

/// `accepted`.
const char* parcel_verdict_name(ParcelVerdict verdict);

/// What `answer` says of one of the tokens of its line, as a delivery: its own verdict, or that of the line.
Delivery delivery_of(const Answer& answer, const CarriedToken& token);

/// The outcome of a token. `may_be_taken`: an earlier try within this batch was not answered.
TokenOutcome outcome_of(const Delivery& delivery, const CarriedToken& token, bool may_be_taken,
                        const DeliveryPolicy& policy, double jitter);

/// A reply as it is recorded: printable, at most 200 bytes; a note instead of it if it repeats a part of one
/// of the tokens.
std::string shown_reply(const std::string& reply, const std::vector<CarriedToken>& tokens);

/// How long to wait before the next try within the batch, after so many: 0.25 s, doubling to 5 s, reduced by
/// up to a fifth by `chance` from 0 to 1.
Milliseconds resend_delay(int tries, double chance);

}  // namespace mailroom
