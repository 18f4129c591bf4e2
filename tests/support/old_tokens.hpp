#pragma once

#include "support/test_database.hpp"

namespace mailroom::test {

/// Adds tokens of account 1 that expired long ago, without running the triggers.
inline void add_old_tokens(db::Connection& connection, int count) {
  connection.transact([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET LOCAL session_replication_role = replica");
    db::Connection::execute(transaction,
                            "INSERT INTO tokens (id, action, account, expires_at, created_at) "
                            "SELECT nextval('tokens_id_seq'), 'activation', 1, 1700000900, 1700000000 "
                            "FROM generate_series(1, $1)",
                            count);
  });
}

}  // namespace mailroom::test
