// Reads mailroom_schema_history.

#include "schema/history.hpp"

#include "db/time_sql.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {
std::vector<SchemaChange> read_schema_history(pqxx::transaction_base& transaction) {
  std::vector<SchemaChange> changes;
  if (!has_table(transaction, "mailroom_schema_history")) return changes;
  const auto rows = Connection::execute(
      transaction, "SELECT " + microseconds_sql("at") +
                       ", version, name, direction, duration_ms, actor, db_user, coalesce(reason, '') "
                       "FROM mailroom_schema_history ORDER BY at, id");
  for (const auto& row : rows) {
    changes.push_back({.at = moment_in<std::chrono::microseconds>(row[0]),
                       .version = row[1].as<std::int64_t>(),
                       .name = row[2].c_str(),
                       .direction = row[3].c_str(),
                       .duration = Milliseconds(row[4].as<std::int64_t>()),
                       .actor = row[5].c_str(),
                       .db_user = row[6].c_str(),
                       .reason = row[7].c_str()});
  }
  return changes;
}

}  // namespace mailroom
