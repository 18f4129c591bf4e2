#pragma once

#include <memory>
#include <string>
#include <vector>

#include "queue/pg_queue_session.hpp"
#include "schema/bookkeeping.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

using Ids = std::vector<std::int64_t>;

/// A session of a collector, for the test to drive step by step.
inline std::unique_ptr<PgQueueSession> attach(const TestDatabase& database,
                                              const std::string& queue = "mailroom") {
  return std::make_unique<PgQueueSession>(database.conninfo(), queue, "token_insert", require_current_schema);
}

inline Ids fetch_ids(QueueSession& session, const Lease& lease) {
  Ids ids;
  session.fetch(lease, [&](const TokenRow& row) { ids.push_back(row.id); });
  return ids;
}

}  // namespace mailroom::test
