// What an operator can do about a token: what holds it back, and the command that helps.
#pragma once

#include <string>
#include <vector>

#include "audit/token_status.hpp"
#include "queue/queue_definition.hpp"
#include "status/delivery_status.hpp"

namespace mailroom::audit {

struct NextStep {
  std::string text{};     ///< what holds it back, or what for: `to mail it`
  std::string command{};  ///< complete, for a shell

  bool operator==(const NextStep&) const = default;
};

/// A queue that gives out no batch.
struct PausedQueue {
  std::string queue{};
  queue::QueuePause pause{};
};

/// What holds back tokens that wait.
struct Holds {
  std::vector<PausedQueue> paused{};
  std::vector<status::UnavailableSink> sinks{};
};

/// Pure. None for a token that was consumed or is no longer in the database, and for one that is about to be
/// sent. `recipients` > 1: it stands for those of a message, which are mailed together.
std::vector<NextStep> next_steps(const TokenReport& report, const Holds& holds, std::int64_t recipients = 1);

/// Reads what holds back the queues that take the tokens, if they wait, within the caller's transaction.
/// Several are those of one message, which has `recipients`.
std::vector<NextStep> read_next_steps(pqxx::transaction_base& transaction,
                                      const std::vector<TokenReport>& reports, std::int64_t recipients);

}  // namespace mailroom::audit
