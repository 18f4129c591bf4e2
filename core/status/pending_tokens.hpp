// How many tokens and scheduled messages wait, at a cost that does not grow with a large backlog.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "fate/outcome.hpp"

namespace mailroom::status {

/// Tokens that expired within an hour, and of which no mail or line is known.
struct ExpiredTokens {
  std::int64_t tokens = 0;
  std::optional<Milliseconds> last{};  ///< how long ago the last of them expired, or was found to have

  std::optional<Milliseconds> oldest{};  ///< how long ago the oldest of them was created, about

  /// `created`: how long ago the oldest of them was created, if that is known.
  void add(std::int64_t more, Milliseconds ago, std::optional<Milliseconds> created = std::nullopt);
  void add(const ExpiredTokens& others) {
    if (others.last) add(others.tokens, *others.last, others.oldest);
  }
};

/// Due tokens that are not acknowledged, by what became of them so far.
struct PendingTokens {
  std::int64_t waiting = 0;
  std::int64_t leased = 0;
  std::int64_t in_gap = 0;
  std::int64_t in_replay = 0;
  std::int64_t deferred = 0;
  bool estimated = false;
  std::optional<Moment> oldest_created_at{};
  bool oldest_estimated = false;  ///< there may be an older one
  /// Those above the cursor, by the seconds that they live at most.
  std::map<std::int64_t, double> waiting_by_life{};
  ExpiredTokens expired{};  ///< above the cursor; not among the others

  std::int64_t total() const { return waiting + leased + in_gap + in_replay + deferred; }
  std::array<std::pair<fate::Outcome, std::int64_t>, 5> by_outcome() const {
    return {{{fate::Outcome::waiting, waiting},
             {fate::Outcome::leased, leased},
             {fate::Outcome::in_gap, in_gap},
             {fate::Outcome::in_replay, in_replay},
             {fate::Outcome::deferred, deferred}}};
  }
};

/// Where a queue is.
struct QueuePosition {
  Moment now{};  ///< the server's clock, in whole milliseconds
  std::int64_t cursor = 0;
  std::int64_t newest = 0;  ///< the highest id that was drawn
  std::int64_t open_from = 0;
  std::string gap_ids;  ///< a bigint[] as text
};

/// Counts all but deferred tokens, within the caller's transaction. Exact up to 5,000 tokens above the cursor
/// and 5,000 ids each in open batches, gaps and replays; beyond that an estimate.
PendingTokens count_pending_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                                   const QueuePosition& position);

/// Ids from `first` to before `end`, each of which represents `weight` ids.
struct IdSample {
  std::int64_t first = 0;
  std::int64_t end = 0;
  double weight = 1;
};

/// Chooses which of the ids from `first` to `last` to read: about 3,000 at most, more densely the newer they
/// are, because tokens expire. Includes all of the newest 1,024.
std::vector<IdSample> plan_samples(std::int64_t first, std::int64_t last);

/// Messages that wait for their time. All queues have them in common: which queues take them shows when they
/// have tokens.
struct ScheduledMessages {
  bool is_known =
      true;  ///< false: the role may not read the schedule, as roles of before there were messages
  std::int64_t messages = 0;
  bool estimated = false;  ///< there are too many to count them
  std::optional<Moment>
      next_at{};  ///< when the first of them is due, in whole milliseconds; in the past: overdue

  /// How long the first of them is overdue; 0 if none is.
  Milliseconds overdue(Moment now) const;
};

/// Within the caller's transaction, at a cost that does not grow with their number.
ScheduledMessages read_scheduled_messages(pqxx::transaction_base& transaction);

}  // namespace mailroom::status
