// When the turn of a token that waits will come.
#pragma once

#include <cstdint>
#include <string>

#include "db/connection.hpp"

namespace mailroom::audit {

struct WaitingTurn {
  static constexpr std::int64_t most_counted = 100'000;

  std::int64_t before = 0;  ///< due tokens that the queue will take first, at most `most_counted`
  double per_second = 0;    ///< what the queue has emitted in a second of the last five minutes
  bool is_paused = false;
};

/// Of a token above the cursor of `queue`. Within the caller's transaction.
WaitingTurn read_waiting_turn(pqxx::transaction_base& transaction, const std::string& queue,
                              std::int64_t token);

}  // namespace mailroom::audit
