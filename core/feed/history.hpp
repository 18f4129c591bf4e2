#pragma once

#include <optional>
#include <vector>

#include "feed/event_filter.hpp"
#include "feed/feed_snapshot.hpp"

namespace mailroom {

/// Which part of the past is told. Without a start, `last` is set.
struct HistoryRequest {
  std::optional<std::int64_t> last;   ///< so many events at the most, the newest
  std::optional<std::int64_t> since;  ///< from this second on
  /// From this token on; other events from the moment on in which it was made.
  std::optional<std::int64_t> from_token;
};

/// The events that `snapshot` shows and `request` and `filter` ask for, by time. 24 bytes each, whatever
/// their number; what they say is looked up later.
std::vector<EventKey> read_history(const FeedSnapshot& snapshot, const HistoryRequest& request,
                                   const EventFilter& filter);

}  // namespace mailroom
