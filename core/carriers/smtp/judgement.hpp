// Decides from the facts of an SMTP exchange what becomes of the mail.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "carriers/smtp/exchange.hpp"
#include "delivery/answer.hpp"

namespace mailroom {

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
