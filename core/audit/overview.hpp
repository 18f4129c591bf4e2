#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audit/timeline.hpp"

namespace mailroom {

/// Totals of the batches of a queue that were last leased within a period.
struct QueueTotals {
  std::string queue{};
  std::int64_t batches = 0;
  std::int64_t emitted = 0;  ///< tokens, like the next four
  std::int64_t expired = 0;
  std::int64_t consumed = 0;
  std::int64_t wrong_status = 0;
  std::int64_t invalid = 0;
  std::int64_t repeated = 0;  ///< batches that were leased more than once
  std::int64_t open = 0;
  std::int64_t dead = 0;
  std::int64_t records = 0;  ///< batches, and claims that only skipped tokens

  std::int64_t skipped() const { return expired + consumed + wrong_status + invalid; }
};

/// The events of all queues and accounts, and of the schema, within a period.
struct Overview {
  std::int64_t now = 0;  ///< the server's clock, in seconds since 1970
  Period period{};
  std::vector<QueueTotals> queues{};  ///< those with a batch in the period, ordered by name
  Timeline timeline{};
};

struct OverviewRequest {
  std::string queue{};        ///< must exist, unless it is empty
  std::string since = "24h";  ///< as parse_moment reads it, by the server's clock
  std::string until{};        ///< likewise; empty for now
  std::int64_t limit = 1000;  ///< entries
  bool batches = false;       ///< add an entry for each batch
};

/// Reads operations and migrations, and batches if requested, from one snapshot, in a transaction of its own.
/// Throws Error(usage) for an invalid moment or an empty period, and DatabaseError MR001 for an unknown
/// queue.
Overview read_overview(Connection& connection, const OverviewRequest& request);

}  // namespace mailroom
