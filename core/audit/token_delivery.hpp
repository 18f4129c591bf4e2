// How audit judges a token that was mailed or handed over: by the outcomes that its queue has recorded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "audit/token_status.hpp"

namespace mailroom {

/// What became of the delivery of a token in a queue.
struct TokenDelivery {
  DeliveryRecord delivery{};
  int accepted = 0;            ///< how many attempts were accepted
  bool maybe = false;          ///< none was accepted for certain, but one may have been
  DeliveryAttempt decisive{};  ///< the last accepted attempt; without one, the last outcome
  std::optional<Outcome>
      next{};  ///< in_open_batch, waiting or waiting_again; nullopt if no queue holds the token
  bool is_of_other_queue = false;  ///< not of the requested queue
};

/// Sets the deliveries of the token: those of `deliveries` with its id, without outcomes before it was
/// created, which are of an earlier token with its id.
void set_deliveries(TokenFacts& facts, const std::vector<DeliveryRecord>& deliveries);

/// Derives the status of each of the deliveries, in the order of `queues`.
std::vector<TokenDelivery> judge_deliveries(const TokenFacts& facts);

/// Removes from a token with deliveries the batches and queues that its deliveries tell about.
TokenFacts without_deliveries(TokenFacts facts);

/// Returns the name in JSON output: `accepted`, `maybe accepted`, or the state of a delivery that was not
/// accepted.
std::string delivery_outcome_name(const TokenDelivery& status);

}  // namespace mailroom
