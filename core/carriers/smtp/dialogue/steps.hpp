// The steps of the dialogue with a relay as one table: their words, requests, awaited replies and time-outs.
#pragma once

#include <optional>
#include <string_view>

namespace mailroom::smtp {

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

/// Which of the configured times a reply may take.
enum class StepLimit {
  timeout,      ///< send.timeout
  end_timeout,  ///< as long as a relay may need to store the message
};

/// What is fixed about a step.
struct StepForm {
  SmtpStep step;
  std::string_view name;  ///< in records: `no reply to RCPT`
  std::string_view verb;  ///< of its request; empty if what is sent is no command
  int awaited;            ///< the reply with which the dialogue goes on; 2 for any of 2xx
  StepLimit limit;
};

const StepForm& form_of(SmtpStep step);

/// The step whose request has this verb; HELO is taken for EHLO.
std::optional<SmtpStep> step_of(std::string_view verb);

/// True if the dialogue goes on after a reply of `code` to `step`.
bool goes_on(SmtpStep step, int code);

}  // namespace mailroom::smtp
