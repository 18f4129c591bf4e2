#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "feed/batch_follower.hpp"
#include "feed/consumption_follower.hpp"
#include "feed/feed_session.hpp"
#include "feed/history.hpp"
#include "feed/id_follower.hpp"

namespace mailroom {

/// The one stream of what happens: tokens, batches, consumption and operations, the past up to a snapshot and
/// from there on what each later snapshot shows anew. Within one snapshot by time, then in the order in which
/// the snapshots were taken. Keeps its place when its session is lost.
///
/// What it cannot see: a token that is removed before it is looked at; a consumption whose consumed_at lies
/// more than `slack` seconds before the start of its transaction or an hour after the server's clock, or is
/// set anew after it was told; at the start, the late commit of a token more than a million ids behind the
/// newest.
class EventFeed {
 public:
  static constexpr std::int64_t default_slack = 10;

  EventFeed(HistoryRequest history, EventFilter filter, Log& log, std::int64_t slack = default_slack);

  /// Reads the past and, if it is to be followed, where the present is: both from one snapshot.
  void start(FeedSession& session, bool follow);
  /// To be called when `session` is another one than before: warns and starts anew from the present if it
  /// leads to another database.
  void resume(FeedSession& session);
  /// Looks once. When nothing has happened, that is one statement.
  void poll(FeedSession& session);

  /// True while next() has something to look up.
  bool has_more() const { return !pending_.empty(); }
  /// The next events, perhaps none where the filter wants none of them. They are forgotten then.
  std::vector<Event> next(FeedSession& session);

  /// How many gaps among the ids may still bring something to light.
  std::size_t open_gaps() const;

 private:
  struct Findings;

  void find_place(const SequencePositions& before, const std::array<SequenceHolders, 3>& holders,
                  const FeedSnapshot& snapshot);
  void look_for_reset(const FeedSnapshot& snapshot);
  Findings read(const FeedSnapshot& snapshot) const;
  void adopt(const Findings& findings);

  HistoryRequest history_;
  EventFilter filter_;
  Log& log_;
  std::int64_t slack_;

  std::array<IdFollower, 3> ids_;  ///< by Followed
  BatchFollower batches_;
  ConsumptionFollower consumption_;
  std::string xmin_;       ///< of the last snapshot that was read
  std::string last_look_;  ///< the look before that snapshot
  std::int64_t server_now_ = 0;
  std::string identity_;
  std::deque<EventKey> pending_;
};

}  // namespace mailroom
