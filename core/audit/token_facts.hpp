// Reads what audit judges a token by, within one snapshot of the database.
#pragma once

#include <string>
#include <vector>

#include "audit/token_status.hpp"
#include "db/values.hpp"

namespace mailroom::audit {

/// Runs `body(transaction, now)` in a read-only transaction whose statements all see one snapshot. `now` =
/// the server's clock, in whole seconds. Throws DatabaseError MR001 if there is no such queue; accepts an
/// empty list.
template <typename Body>
auto in_one_snapshot(db::Connection& connection, const std::vector<std::string>& queues, const Body& body) {
  return connection.transact([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const auto now = db::Connection::execute(transaction, "SELECT floor(extract(epoch FROM now()))::bigint");
    for (const auto& queue : queues)
      db::Connection::execute(transaction, "SELECT mailroom_queue_state($1)", queue);
    return body(transaction, now.moment<std::chrono::seconds>());
  });
}

// The following functions run within the caller's transaction.

/// Returns the token `id`. If it does not exist, its times are estimated from its neighbours: ids roughly
/// follow time, and a token lives for less than a day. Throws
/// Error(unusable) for an id that the sequence has not reached. Batches, operations and queues are empty.
TokenFacts read_token(pqxx::transaction_base& transaction, std::int64_t id, Moment now);

/// Sets the queues of each of `tokens` that take its action, `first` first. Searches for the claim that
/// skipped a token only if no batch holds the token.
void read_token_positions(pqxx::transaction_base& transaction, const std::vector<std::string>& first,
                          std::vector<TokenFacts>& tokens);

}  // namespace mailroom::audit
