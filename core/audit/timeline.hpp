#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "accounts/batch_lookup.hpp"
#include "audit/operations.hpp"
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

/// A claim came to a token that was not due, and left it.
struct TokenPassing {
  std::int64_t token = 0;
  std::int64_t account = 0;
  std::int64_t batch = 0;  ///< the record of the claim
  std::string queue{};
  std::string reason{};         ///< `expired`, `consumed` or `wrong status`; empty where it is not known
  bool reason_certain = false;  ///< recorded, and not concluded from how things are now
};

/// A collector ended without acknowledging its batch, and another took that over.
struct Abandonment {
  BatchRecord claim;    ///< the batch as the one held it
  std::int64_t at = 0;  ///< when the other took it over, in microseconds since 1970
};

using Happening =
    std::variant<AccountChange, TokenChange, TokenPassing, BatchRecord, Abandonment, Operation, SchemaChange>;

struct TimelineEntry {
  std::int64_t at = 0;    ///< microseconds since 1970
  bool precise = true;    ///< false: known to the second alone
  std::int64_t rank = 0;  ///< orders those that the time does not
  Happening what;
};

/// Of what is known to the second alone, what begins a life comes before all that happened within the second,
/// and what ends it after it.
TimelineEntry to_the_second(std::int64_t seconds, AccountChange change);
TimelineEntry to_the_second(std::int64_t seconds, TokenChange change);
/// When it was acknowledged, set aside or, of one that is still open, claimed.
TimelineEntry entry_of(const BatchRecord& batch);
TimelineEntry entry_of(const Abandonment& abandonment);
TimelineEntry entry_of(const Operation& operation);
TimelineEntry entry_of(const SchemaChange& change);

/// From `since` to before `until`, in seconds since 1970.
struct Period {
  std::int64_t since = std::numeric_limits<std::int64_t>::min();
  std::int64_t until = std::numeric_limits<std::int64_t>::max();
};

/// The period that two moments span (as parse_moment reads them), as of `now`; an empty one bounds nothing.
/// Throws Error(usage) when one does not parse, or nothing lies between them.
Period parse_period(const std::string& since, const std::string& until, std::int64_t now);

/// The attempts of `batch` that came to nothing, oldest first.
std::vector<Abandonment> abandonments_of(const BatchRecord& batch);

struct Timeline {
  std::vector<TimelineEntry> entries{};
  std::int64_t left_out = 0;  ///< older ones, for want of room

  /// Puts the entries in order and keeps those of `period`, the newest `limit` of them.
  void arrange(const Period& period, std::int64_t limit);
};

}  // namespace mailroom
