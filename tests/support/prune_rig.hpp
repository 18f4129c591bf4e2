#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "prune/pruner.hpp"
#include "support/test_database.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

constexpr std::chrono::hours month{24 * 30};
constexpr std::chrono::hours contents{24 * 36'500};  ///< of messages: they stay
inline const queue::OperationAuthor author{.actor = "ann@host", .reason = "housekeeping"};

inline bool always(const prune::PruneProgress& /*progress*/) {
  return true;
}

inline prune::PruneSummary prune(const TestDatabase& database, int step = 1000,
                                 const prune::PruneObserver& go_on = always) {
  const auto connection = database.connect();
  // Pruning waits for no lock; with this timeout a wait fails the test instead of blocking it.
  connection->run("SET lock_timeout = '10s'");
  return prune::Pruner(*connection, {.records = month, .contents = contents}, step).remove(author, go_on);
}

inline prune::PruneSummary count(const TestDatabase& database, int step = 1000) {
  const auto connection = database.connect();
  return prune::Pruner(*connection, {.records = month, .contents = contents}, step).count(always);
}

/// Makes tokens expire `days` days ago.
inline void expire(db::Connection& connection, const std::string& where, int days = 31) {
  connection.run("UPDATE tokens SET expires_at = extract(epoch FROM now()) - 86400 * $1::int WHERE " + where,
                 days);
}

/// Moves the times of all batches back by `days` days.
inline void age_batches(db::Connection& connection, int days = 31) {
  connection.run(
      "UPDATE mailroom_batches SET claimed_at = claimed_at - $1::int * interval '1 day', "
      "emitted_at = emitted_at - $1::int * interval '1 day', "
      "dead_at = dead_at - $1::int * interval '1 day'",
      days);
}

inline Ids ids(db::Connection& connection, const std::string& sql) {
  Ids found;
  for (const auto& row : connection.run(sql))
    found.push_back(row[0].as<std::int64_t>());
  return found;
}

inline Ids tokens(db::Connection& connection) {
  return ids(connection, "SELECT id FROM tokens ORDER BY id");
}

inline Ids batches(db::Connection& connection) {
  return ids(connection, "SELECT id FROM mailroom_batches ORDER BY id");
}

inline std::int64_t operations(db::Connection& connection) {
  return value<std::int64_t>(connection, "SELECT count(*) FROM mailroom_operations");
}

}  // namespace mailroom::test
