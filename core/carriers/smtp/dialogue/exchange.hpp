// What is known of an attempt at a mail, in terms of SMTP.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "carriers/smtp/dialogue/steps.hpp"
#include "delivery/refusal_memory.hpp"

namespace mailroom::smtp {

/// Why there is no reply to the last step, or why an attempt was given up.
enum class SmtpStop {
  none,
  lost,
  timed_out,
  interrupted,
  no_smtp,             ///< what greets is no SMTP server
  no_auth,             ///< a user is configured, and the relay offers no AUTH
  no_login,            ///< no mechanism that is offered fits, or there is no token
  no_smtputf8,         ///< the mail needs it, for an address or its header
  no_8bitmime,         ///< the mail needs it
  no_sender_smtputf8,  ///< the sender's does
};

/// What is known of an attempt when it has ended.
struct SmtpExchange {
  SmtpStep step = SmtpStep::connect;
  int code = 0;  ///< of the complete reply to this step; 0 if none came
  SmtpStop stop = SmtpStop::none;
  bool reused = false;  ///< the connection had carried an earlier mail
  delivery::RefusalSubject about = delivery::RefusalSubject::unclear;  ///< whom a refusal after MAIL is about
  bool is_own_mail_command = false;  ///< MAIL said what only this mail needs: SMTPUTF8 or 8BITMIME
};

/// True for a code that decides about the last step: 2xx, 4xx or 5xx (RFC 5321, section 4.2.1). After any
/// other code, or none, a reply may still come, and the connection must not be used again.
bool is_definite(int code);

/// True if the relay has answered, and waits for the next command: QUIT is due before the connection ends
/// (RFC 5321, section 4.1.1.10).
bool awaits_command(const SmtpExchange& exchange);

/// True for a complete reply from MAIL on that is neither the awaited one nor a refusal, such as 250 to DATA.
bool is_unexpected(const SmtpExchange& exchange);

/// Why there is no reply, for the records: `no reply to RCPT within 30s`. `waited` is the time-out of the
/// step.
std::string missing_reply_text(const SmtpExchange& exchange, Milliseconds waited);

}  // namespace mailroom::smtp
