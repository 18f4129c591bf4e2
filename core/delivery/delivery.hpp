// A mail as a relay takes it, and what one attempt at it came to.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom {

/// What became of a mail.
enum class MailOutcome {
  accepted,     ///< the relay has taken responsibility
  deferred,     ///< not accepted; a later attempt may succeed
  rejected,     ///< will never be accepted
  unknown,      ///< the end of the message was sent and not answered: the relay may have the mail
  unavailable,  ///< the relay takes no mail now; says nothing about this one
};

/// The word for `outcome` in records and output: `accepted`.
const char* mail_outcome_name(MailOutcome outcome);

/// One mail to one recipient.
struct Mail {
  std::string from;          ///< envelope sender, without angle brackets; empty for the null sender
  std::string to;            ///< envelope recipient, without angle brackets, its domain in ASCII
  std::string_view message;  ///< header and body with CRLF line ends; must live until the delivery has ended
  bool needs_smtputf8 = false;
  std::string
      utf8_sender{};  ///< an address of the configuration that needs SMTPUTF8 for every mail; or empty
};

struct Delivery {
  MailOutcome outcome = MailOutcome::unavailable;
  bool counts = false;  ///< true if this was an attempt at the mail; false if the mail is not at fault
  int code = 0;         ///< of the relay's reply; 0 if there was no reply
  /// The text of the reply without its code, or why there was none: printable, at most 200 bytes, without
  /// credentials. That of an accepted mail has the relay's queue id.
  std::string reply;
  std::string relay;                                ///< host:port
  std::optional<std::chrono::seconds> retry_after;  ///< when the reply names a time, or the breaker does
  bool throttled = false;                           ///< the relay asks for a lower rate
  bool crowded = false;         ///< the relay takes no more connections, or no more mails at once
  bool before_mail = false;     ///< it ended before MAIL, at the connection or the login
  bool waits_for_turn = false;  ///< the mail was not tried, or refused by a limit: it may be tried soon
  std::string refusal{};        ///< the key of a refusal after MAIL that may be about every mail; else empty
  bool about_relay = false;     ///< deferred, since the relay refuses one mail after another
  std::chrono::nanoseconds took{};  ///< the attempt; 0 if no relay was tried
  WallTime ended{};                 ///< when it ended
};

}  // namespace mailroom
