#include "schema/schema_inspection.hpp"

namespace mailroom {

SchemaInspection inspect_schema(Connection& connection) {
  if (connection.run("SELECT pg_is_in_recovery()")[0][0].as<bool>()) {
    throw Error(ExitCode::failed,
                "the server is a standby, on which the migrations cannot be built for comparison",
                "connect to the primary: a standby has the same catalogue");
  }
  SchemaInspection look;
  connection.dry_run([&](pqxx::work& transaction) {
    Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE");
    look.schema = Connection::execute(transaction, "SELECT current_schema()")[0][0].c_str();
    look.built = build_catalogues(transaction, look.schema);
    look.found = read_catalogue(transaction, look.schema, object_names(look.built));
  });
  return look;
}

}  // namespace mailroom
