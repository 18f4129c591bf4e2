#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// Runs `body(transaction, now)` in a read-only transaction whose statements all see one snapshot. `now` =
/// the server's clock, in seconds since 1970.
template <typename Body>
auto in_one_snapshot(Connection& connection, const Body& body) {
  return connection.transact([&](pqxx::work& transaction) {
    Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const auto now =
        Connection::execute(transaction, "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint")[0][0]
            .as<std::int64_t>();
    return body(transaction, now);
  });
}

}  // namespace mailroom
