#pragma once

#include <fmt/format.h>
#include <string>

#include "support/test_database.hpp"

namespace mailroom::test {

/// True while a collector keeps inserts into `connection`'s database from notifying.
inline bool somebody_is_polling(db::Connection& connection) {
  return locks(connection, "classid = 1835100526 AND mode = 'ExclusiveLock' AND granted") > 0;
}

/// Inserts in a transaction and prepares it as `name`. PostgreSQL refuses that if the transaction has
/// notified: then rolls back and returns false.
inline bool prepare_insert(db::Connection& connection, const std::string& name) {
  connection.run("BEGIN");
  insert_accounts(connection, 1, name);
  try {
    connection.run(fmt::format("PREPARE TRANSACTION '{}'", name));
  } catch (const db::DatabaseError& error) {
    connection.run("ROLLBACK");
    if (error.sqlstate() != "0A000") throw;
    return false;
  }
  return true;
}

}  // namespace mailroom::test
