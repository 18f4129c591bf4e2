#pragma once

#include <optional>
#include <vector>

#include "db/connection.hpp"
#include "feed/event_filter.hpp"

namespace mailroom {

/// Which past events to read. `since` or `from_token` is the start; without either, `last` must be set.
struct HistoryRequest {
  std::optional<std::int64_t> last;        ///< at most this many events, the newest
  std::optional<std::int64_t> since;       ///< seconds since 1970
  std::optional<std::int64_t> from_token;  ///< this token and later ones; other events since it was created
};

/// Returns the events that match `request` and `filter`, in order of time, 24 bytes each. Reads through a
/// cursor within the caller's transaction, so events that do not match use no memory.
std::vector<EventKey> read_history(pqxx::work& transaction, const HistoryRequest& request,
                                   const EventFilter& filter);

}  // namespace mailroom
