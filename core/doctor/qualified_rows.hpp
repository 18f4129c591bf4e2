// Lets a query of the catalogues write statements that can be run as they are.
#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// Runs `sql`, in which $1 is the current schema and $2… are `arguments`, with only pg_catalog on the
/// search_path: the server then writes every other name with its schema, as SQL that is printed needs it.
template <typename... Arguments>
pqxx::result qualified_rows(Connection& connection, const std::string& sql, const Arguments&... arguments) {
  return connection.transact([&](pqxx::work& transaction) {
    const std::string schema = Connection::execute(transaction, "SELECT current_schema()")[0][0].c_str();
    Connection::execute(transaction, "SET LOCAL search_path = pg_catalog");
    return Connection::execute(transaction, sql, schema, arguments...);
  });
}

}  // namespace mailroom
