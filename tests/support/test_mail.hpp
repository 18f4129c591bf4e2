#pragma once

#include <string>
#include <string_view>

#include "carriers/smtp/session/session.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test {

/// A message with lines that need dot stuffing.
constexpr std::string_view test_message =
    "From: sender@mail.example\r\nSubject: test\r\n\r\n.\r\n..two dots\r\nlast line\r\n";

inline delivery::Message mail_to(const std::string& recipient, std::string_view message = test_message) {
  return {.body = message, .envelope = {.from = "sender@mail.example", .to = recipient}};
}

/// Time-outs that are as short as they can be, for a relay that does not answer.
inline smtp::RelayOptions impatient() {
  smtp::RelayOptions options;
  options.timeout = Milliseconds(1000);
  options.end_timeout = Milliseconds(1000);
  return options;
}

inline smtp::RelayUrl url_of(const TestRelay& server, const std::string& user = {}) {
  return smtp::parse_relay_url(server.url(user));
}

/// `deferred, counted, 451: try later`
inline std::string text_of(const delivery::Answer& delivery) {
  return std::string(delivery::verdict_name(delivery.verdict)) +
         (delivery.counts() ? ", counted, " : ", not counted, ") + std::to_string(delivery.code) + ": " +
         delivery.reply;
}

}  // namespace mailroom::test
