// What an answer of Resend says of a mail, or of several in one request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "carriers/http/exchange.hpp"
#include "delivery/answer.hpp"

namespace mailroom::resend {

/// What Resend says of a request that it does not take.
struct ResendError {
  std::string name{};     ///< `validation_error`; empty if it names none
  std::string message{};  ///< for people; may be empty

  /// `validation_error: Invalid `to` field`, or the status if there are no words.
  std::string text(int status) const;
};

ResendError parse_resend_error(const http::HttpResponse& response);

/// True if it is about the key: there is none, or it is no key of Resend's.
bool is_about_key(const ResendError& error, int status);

/// True if Resend has suspended the key or the account.
bool is_suspended(const ResendError& error);

/// True if the key may send mails and nothing else, so that it may not be asked about.
bool may_only_send(const ResendError& error);

/// The verdict, code, reply, wait and tokens by the table of docs/providers.md; the carrier adds the rest.
/// `tokens`: those of the mails of the request, in their order. `now`: seconds since 1970. Pure.
delivery::Answer judge_resend(const http::HttpOutcome& outcome, const std::vector<std::int64_t>& tokens,
                              std::int64_t now);

/// How long the next request must wait, as the rate headers say: the limit is used up. nullopt: not at all.
std::optional<Milliseconds> rest_of_limit(const http::HttpResponse& response);

}  // namespace mailroom::resend
