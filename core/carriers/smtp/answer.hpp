// The facts of an attempt in terms of SMTP, and what becomes of the mail by them.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "carriers/smtp/refusal.hpp"
#include "delivery/answer.hpp"

namespace mailroom {

/// How far an attempt at one mail has come: the command that was sent last.
enum class SmtpStep {
  connect,   ///< connecting, TLS of smtps://, the relay's greeting
  hello,     ///< EHLO or HELO
  starttls,  ///< STARTTLS and its handshake
  auth,
  noop,  ///< in a check, instead of a mail
  rset,  ///< before a mail, or in a check after MAIL
  mail,
  rcpt,
  data,
  body,  ///< the relay has said 354; a part of the message may have been sent
  end,   ///< the whole message was read, so its final dot may have been sent
};

/// Why there is no reply to the last step, or why an attempt was given up.
enum class SmtpStop {
  none,
  lost,
  timed_out,
  interrupted,
  no_smtp,             ///< what greets is no SMTP server
  no_auth,             ///< a user is configured, and the relay offers no AUTH
  no_login,            ///< no mechanism that is offered fits, or there is no token
  no_smtputf8,         ///< the recipient's address needs it
  no_sender_smtputf8,  ///< the sender's does
};

/// What is known of an attempt when it has ended.
struct SmtpExchange {
  SmtpStep step = SmtpStep::connect;
  int code = 0;  ///< of the complete reply to this step; 0 if none came
  SmtpStop stop = SmtpStop::none;
  bool reused = false;                             ///< the connection had carried an earlier mail
  RefusalSubject about = RefusalSubject::unclear;  ///< whom a refusal after MAIL is about
  bool is_own_mail_command = false;                ///< MAIL said what only this mail needs: SMTPUTF8
};

/// What an attempt means for the mail.
struct MailJudgement {
  Verdict verdict;
  bool counts;
  bool again;  ///< worth a second attempt at once, on a fresh connection

  bool operator==(const MailJudgement&) const = default;
};

/// True for a code that decides about the last step: 2xx, 4xx or 5xx. After any other code, or none, a reply
/// may still come, and the connection must not be used again.
bool is_definite(int code);

/// True if the relay has answered, and waits for the next command: QUIT is due before the connection ends
/// (RFC 5321, section 4.1.1.10).
bool awaits_command(const SmtpExchange& exchange);

/// The table of docs/smtp.md.
MailJudgement judge(const SmtpExchange& exchange);

/// True for a complete reply from MAIL on that is neither the awaited one nor a refusal, such as 250 to DATA.
bool is_unexpected(const SmtpExchange& exchange);

/// The name of a step: `RCPT`.
std::string_view step_name(SmtpStep step);

/// Why there is no reply, for the records: `no reply to RCPT within 30s`. `waited` is the time-out of the
/// step.
std::string missing_reply_text(const SmtpExchange& exchange, Milliseconds waited);

}  // namespace mailroom
