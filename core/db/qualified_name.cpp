// Leaves quoting to the server, and fills in the schema at each mark.

#include "db/qualified_name.hpp"

namespace mailroom {

std::string quoted_schema(Connection& connection) {
  return connection.run("SELECT quote_ident(current_schema())")[0][0].c_str();
}

std::string qualified_name(Connection& connection, const std::string& name) {
  return in_schema("@." + name, quoted_schema(connection));
}

std::string in_schema(std::string statement, const std::string& schema) {
  const std::string mark = "@.";
  for (auto at = statement.find(mark); at != std::string::npos;
       at = statement.find(mark, at + schema.size() + 1))
    statement.replace(at, 1, schema);
  return statement;
}

}  // namespace mailroom
