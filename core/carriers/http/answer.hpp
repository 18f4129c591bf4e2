// What the answer to a webhook request says of a line and its tokens.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "carriers/http/exchange.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::http {

/// The verdict, code, reply, wait and tokens of the answer to a webhook; the carrier adds the rest. `now`:
/// seconds since 1970, for a Retry-After with a date.
delivery::Answer judge_response(const HttpOutcome& outcome, std::time_t now);

/// The time that Retry-After names: seconds, or a date (RFC 9110, section 10.2.3). At most a day.
std::optional<Milliseconds> parse_retry_after(std::string_view text, std::time_t now);

/// Why a redirection is no answer: `the server redirects to …, which is not followed`.
std::string redirection_words(const HttpResponse& response);

/// The tokens that the JSON of a 2xx answer names: `{"tokens": [{"id": 1, "outcome": "rejected", "reason":
/// "…"}]}`, with the outcomes `accepted`, `deferred` and `rejected`. Nothing if it has another form.
std::vector<delivery::TokenVerdict> parse_token_outcomes(std::string_view body);

}  // namespace mailroom::http
