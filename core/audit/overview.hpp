#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audit/timeline.hpp"

namespace mailroom {

/// The batches of a queue that were last handed out within a period, in sum.
struct QueueTotals {
  std::string queue{};
  std::int64_t batches = 0;
  std::int64_t handed_on = 0;  ///< tokens; so the next
  std::int64_t expired = 0;
  std::int64_t consumed = 0;
  std::int64_t wrong_status = 0;
  std::int64_t invalid = 0;
  std::int64_t repeated = 0;  ///< batches that were handed out more than once; so the next
  std::int64_t open = 0;
  std::int64_t set_aside = 0;
  std::int64_t records = 0;  ///< batches, and records of tokens passed over where there was nothing else

  std::int64_t passed_over() const { return expired + consumed + wrong_status + invalid; }
};

/// What happened to all queues, accounts and the schema.
struct Overview {
  std::int64_t now = 0;  ///< the server's clock, in seconds since 1970
  Period period{};
  std::vector<QueueTotals> queues{};  ///< those with a batch, by name
  Timeline timeline{};
};

struct OverviewRequest {
  std::string queue{};        ///< has to be there; empty for any
  std::string since = "24h";  ///< what parse_moment reads, as of the server's clock
  std::string until{};        ///< the same; without one all until now
  std::int64_t limit = 1000;  ///< entries
  bool batches = false;       ///< an entry for each batch as well
};

/// Operations and migrations, and batches if asked for. Reads one snapshot, in a transaction of its own.
/// Throws Error(usage) for a moment that does not parse, or an empty period, and DatabaseError MR001 for an
/// unknown queue.
Overview read_overview(Connection& connection, const OverviewRequest& request);

}  // namespace mailroom
