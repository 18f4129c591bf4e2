// A period, and the events in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "feed/event.hpp"

namespace mailroom::audit {

/// From `since` to before `until`, which have whole seconds.
struct Period {
  Moment since = Moment::min();
  Moment until = Moment::max();

  bool has(Moment moment) const { return moment >= since && moment < until; }
};

/// Returns the period between two moments, as parse_moment reads them at `now`; an empty moment is no bound.
/// Throws Error(usage) if a moment is invalid or the period is empty; `what` is the options' beginning,
/// `--mailed-`.
Period parse_period(const std::string& since, const std::string& until, Moment now,
                    const std::string& what = "--");

struct Timeline {
  std::vector<feed::Event> entries{};
  std::int64_t omitted = 0;  ///< number of older entries beyond the limit

  void add(const feed::Operation& operation) { entries.push_back({operation.kind, operation.at, operation}); }
  void add(const schema::SchemaChange& change) {
    entries.push_back({feed::EventKind::migrated, change.at, change});
  }
  void add(const feed::DeliveryAttempt& attempt) {
    entries.push_back({feed::EventKind::delivery, attempt.at, attempt});
  }
  /// At the time when the batch was acknowledged or dead-lettered or, if it is open, claimed.
  void add(const queue::BatchRecord& batch);
  /// Sorts the entries and keeps the newest `limit` within `period`.
  void arrange(const Period& period, std::int64_t limit);
};

/// Returns the abandoned attempts of `batch`, oldest first: the batch as it was during each lease, and the
/// time when the next attempt began.
std::vector<feed::Event> abandonments_of(const queue::BatchRecord& batch);

}  // namespace mailroom::audit
