#include "schema/drift_look.hpp"

namespace mailroom {

SchemaLook look_at_schema(Connection& connection) {
  if (connection.run("SELECT pg_is_in_recovery()")[0][0].as<bool>()) {
    throw Error(ExitCode::failed, "the server is a standby, where the migrations cannot be built to compare",
                "connect to the primary: a standby has the same catalogue");
  }
  SchemaLook look;
  connection.rehearse([&](pqxx::work& transaction) {
    Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE");
    look.schema = Connection::execute(transaction, "SELECT current_schema()")[0][0].c_str();
    look.built = build_catalogues(transaction, look.schema);
    look.found = read_catalogue(transaction, look.schema, object_names(look.built));
  });
  return look;
}

}  // namespace mailroom
