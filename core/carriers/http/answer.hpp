// What the answer to a webhook request says of a line and its tokens.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "delivery/carrier.hpp"

namespace mailroom {

/// What a server has answered to one request, as far as it was read.
struct HttpResponse {
  int status = 0;           ///< 0 for none
  std::string retry_after;  ///< the header, or empty
  std::string location;     ///< the header, or empty
  bool is_json = false;     ///< its Content-Type says so
  std::string body;         ///< its begin, if it is longer than is read
};

/// How a request ended.
enum class HttpEnd {
  answered,  ///< with a whole answer, or with more than is read of one
  unsent,    ///< no connection, or none to be trusted
  cut_off,   ///< after the request had been sent, before the end of the answer
};

/// The verdict, code, reply, wait and tokens of the answer; the carrier adds the rest. `failure`: why there
/// is no whole answer. `now`: seconds since 1970, for a Retry-After with a date.
Answer judge_response(const HttpResponse& response, HttpEnd end, const std::string& failure, std::time_t now);

/// The time that Retry-After names: seconds, or a date (RFC 9110, section 10.2.3). At most a day.
std::optional<Milliseconds> parse_retry_after(std::string_view text, std::time_t now);

/// The tokens that the JSON of a 2xx answer names: `{"tokens": [{"id": 1, "outcome": "rejected", "reason":
/// "…"}]}`, with the outcomes `accepted`, `deferred` and `rejected`. Nothing if it has another form.
std::vector<TokenVerdict> parse_token_outcomes(std::string_view body);

}  // namespace mailroom
