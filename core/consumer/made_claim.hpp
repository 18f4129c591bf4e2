// A claim that the loop has made: what was asked for, what came back, and what was known before.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "consumer/consumer_observer.hpp"
#include "consumer/queue_session.hpp"
#include "consumer/queue_turns.hpp"

namespace mailroom {

struct MadeClaim {
  QueueTurns::Turn turn;
  ClaimRequest request;
  TimePoint started;
  int session = 0;             ///< the number of the session that made it
  bool was_last_poll = false;  ///< the last one of draining, if it succeeds
  bool was_paused = false;     ///< its queue, by the claim before
  ClaimReply reply{};
  std::chrono::nanoseconds took{};
  std::int64_t passed = 0;  ///< the queue's cursor before: all tokens up to this id had been claimed once

  /// Why its batch was taken. `last_token`: the highest id in the batch; 0 if it has no token.
  BatchTrigger trigger(std::int64_t last_token) const {
    const bool was_passed = last_token > 0 && last_token <= passed;
    if (was_passed || reply.lease->attempt > 1) return BatchTrigger::replay;
    const auto& decision = turn.decision;
    if (!decision.partial || decision.full || reply.size >= std::min(turn.line_limit, request.limit))
      return BatchTrigger::full;
    return decision.draining ? BatchTrigger::drain : BatchTrigger::timeout;
  }
};

}  // namespace mailroom
