// What an answer of Amazon SES says of a mail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carriers/http/exchange.hpp"
#include "delivery/answer.hpp"

namespace mailroom::ses {

/// What SES says of a request that it does not take.
struct SesError {
  std::string name{};     ///< `MessageRejected`; empty if it names none
  std::string message{};  ///< for people; may be empty

  /// `MessageRejected: Address is on the list`, or the status if there are no words.
  std::string text(int status) const;
};

SesError parse_ses_error(const http::HttpResponse& response);

/// True if it is about who asks: the key, the signature, the session or the permissions.
bool is_about_login(const SesError& error, int status);

/// True if it asks for fewer requests.
bool is_throttle(const SesError& error, int status);

/// How far this host's clock is ahead of the server's, as the header Date says; nullopt without one. `now`:
/// seconds since 1970.
std::optional<std::chrono::seconds> clock_lead(const http::HttpResponse& response, std::int64_t now);

/// `; the clock of this host is 7m behind the server's`, if it is a minute or more; else empty.
std::string clock_words(const http::HttpResponse& response, std::int64_t now);

/// The verdict, code, reply and wait by the table of docs/providers.md; the carrier adds the rest.
/// `recipient`: of the mail. `now`: seconds since 1970. Pure.
delivery::Answer judge_ses(const http::HttpOutcome& outcome, std::string_view recipient, std::int64_t now);

}  // namespace mailroom::ses
