// What becomes of a mail by what is known of an attempt at it.
//
// It judges one attempt. It does not compare it with other mails (delivery/refusal_memory), and does not say
// when the mail is tried again (delivery/dispatch_answers, delivery_policy).
#pragma once

#include "carriers/smtp/dialogue/exchange.hpp"
#include "delivery/answer.hpp"

namespace mailroom::smtp {

/// What an attempt means for the mail.
struct MailJudgement {
  delivery::Verdict verdict;
  bool counts;
  bool again;  ///< worth a second attempt at once, on a fresh connection

  bool operator==(const MailJudgement&) const = default;
};

/// The table of docs/smtp.md.
MailJudgement judge(const SmtpExchange& exchange);

}  // namespace mailroom::smtp
