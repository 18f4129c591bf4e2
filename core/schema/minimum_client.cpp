#include "schema/minimum_client.hpp"

#include <fmt/format.h>

namespace mailroom {

long read_minimum_client(Connection& connection) {
  const auto declared = connection.run(
      "SELECT format('SELECT %I.mailroom_minimum_client()', current_schema()) "
      "WHERE to_regprocedure(format('%I.mailroom_minimum_client()', current_schema())) IS NOT NULL");
  if (declared.empty()) return 0;
  return connection.run(declared[0][0].c_str())[0][0].as<long>();
}

void require_fitting(long version, long newest, long minimum_client) {
  if (version < newest) {
    throw Error(ExitCode::schema,
                fmt::format("the schema has version {}, but version {} is needed", version, newest),
                "run: mailroom migrate");
  }
  if (version > newest && minimum_client > newest) {
    throw Error(
        ExitCode::schema,
        fmt::format("the schema has version {}, which needs a mailroom that knows version {} or newer; "
                    "this one knows versions up to {}",
                    version, minimum_client, newest),
        "upgrade mailroom on this machine: the schema was migrated by a newer version");
  }
}

}  // namespace mailroom
