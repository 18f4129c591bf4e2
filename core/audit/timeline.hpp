#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "audit/operations.hpp"
#include "queue/batch_lookup.hpp"
#include "schema/history.hpp"

namespace mailroom {

struct AccountChange {
  enum class What { created, activated, suspended, restored };
  What what = What::created;
  std::int64_t account = 0;
  std::string login{};
};

struct TokenChange {
  enum class What { issued, consumed, expired };
  What what = What::issued;
  std::int64_t token = 0;
  std::int64_t account = 0;
  std::string action{};
  std::int64_t expires_at = 0;  ///< seconds since 1970
};

/// A claim skipped a token that was not due.
struct TokenSkip {
  std::int64_t token = 0;
  std::int64_t account = 0;
  std::int64_t batch = 0;  ///< the record of the claim
  std::string queue{};
  std::string reason{};         ///< `expired`, `consumed` or `wrong status`; empty if unknown
  bool reason_certain = false;  ///< recorded, not derived from the present state
};

/// A lease that ended without an acknowledgement; the next attempt took the batch over.
struct Abandonment {
  BatchRecord claim;    ///< the batch as it was during that lease
  std::int64_t at = 0;  ///< when the next attempt began, in microseconds since 1970
};

using TimelineEvent =
    std::variant<AccountChange, TokenChange, TokenSkip, BatchRecord, Abandonment, Operation, SchemaChange>;

struct TimelineEntry {
  std::int64_t at = 0;    ///< microseconds since 1970
  bool precise = true;    ///< false if `at` has whole seconds
  std::int64_t rank = 0;  ///< sort key: `at`, adjusted by to_the_second()
  TimelineEvent what;
};

/// Entries whose times have whole seconds. A creation sorts before all other events of its second, and other
/// changes sort after them.
TimelineEntry to_the_second(std::int64_t seconds, AccountChange change);
TimelineEntry to_the_second(std::int64_t seconds, TokenChange change);
/// At the time when the batch was acknowledged or dead-lettered or, if it is open, claimed.
TimelineEntry entry_of(const BatchRecord& batch);
TimelineEntry entry_of(const Abandonment& abandonment);
TimelineEntry entry_of(const Operation& operation);
TimelineEntry entry_of(const SchemaChange& change);

/// From `since` to before `until`, in seconds since 1970.
struct Period {
  std::int64_t since = std::numeric_limits<std::int64_t>::min();
  std::int64_t until = std::numeric_limits<std::int64_t>::max();
};

/// Returns the period between two moments, as parse_moment reads them at `now`; an empty moment is no bound.
/// Throws Error(usage) if a moment is invalid or the period is empty.
Period parse_period(const std::string& since, const std::string& until, std::int64_t now);

/// Returns the abandoned attempts of `batch`, oldest first.
std::vector<Abandonment> abandonments_of(const BatchRecord& batch);

struct Timeline {
  std::vector<TimelineEntry> entries{};
  std::int64_t omitted = 0;  ///< number of older entries beyond the limit

  /// Sorts the entries and keeps the newest `limit` within `period`.
  void arrange(const Period& period, std::int64_t limit);
};

}  // namespace mailroom
