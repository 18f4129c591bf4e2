#pragma once

#include <optional>
#include <string>
#include <vector>

#include "audit/token_status.hpp"

namespace mailroom {

/// What became of the mail of a token in a queue.
struct MailStatus {
  MailRecord mail{};
  int accepted = 0;        ///< how many attempts the relay accepted
  bool maybe = false;      ///< none was accepted for certain, but one may have been
  MailAttempt decisive{};  ///< the last accepted attempt; without one, the last outcome
  std::optional<Outcome>
      next{};  ///< in_open_batch, waiting or waiting_again; nullopt if no queue holds the token
  bool is_of_other_queue = false;  ///< not of the requested queue
};

/// Sets the mails of the token: those of `mails` with its id, without outcomes before it was created, which
/// are of an earlier token with its id.
void set_mails(TokenFacts& facts, const std::vector<MailRecord>& mails);

/// Derives the status of each of the mails, in the order of `queues`.
std::vector<MailStatus> judge_mails(const TokenFacts& facts);

/// Removes from a token with mails the batches and queues that its mails tell about.
TokenFacts without_mails(TokenFacts facts);

/// Returns the name in JSON output: `mailed`, `maybe mailed`, or the state of a mail that was not accepted.
std::string mail_outcome_name(const MailStatus& status);

}  // namespace mailroom
