// The facts of an attempt in terms of SMTP: the last step, its reply, and what cut it short.
#pragma once

#include "carriers/smtp/refusal.hpp"

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

}  // namespace mailroom
