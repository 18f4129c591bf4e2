#include "doctor/qualified_rows.hpp"

namespace mailroom {

pqxx::result qualified_rows(Connection& connection, const std::string& sql) {
  return connection.transact([&](pqxx::work& transaction) {
    const std::string schema = Connection::execute(transaction, "SELECT current_schema()")[0][0].c_str();
    Connection::execute(transaction, "SET LOCAL search_path = pg_catalog");
    return Connection::execute(transaction, sql, schema);
  });
}

}  // namespace mailroom
