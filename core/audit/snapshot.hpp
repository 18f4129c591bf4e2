#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// Does `body(transaction, now)` in a transaction that sees one snapshot of the database and writes nothing,
/// so that what is read one after the other fits together. `now` = the server's clock, in seconds since 1970.
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
