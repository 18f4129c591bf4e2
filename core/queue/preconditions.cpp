// Reads pg_trigger, pg_sequence and pg_sequences, as far as the role may.

#include "queue/preconditions.hpp"

#include <fmt/format.h>

#include "db/qualified_name.hpp"

namespace mailroom {

TriggerState trigger_state(Connection& connection, const std::string& table, const std::string& trigger) {
  const auto rows = connection.run(
      "SELECT tgenabled IN ('O', 'A') FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = $2", table,
      trigger);
  if (rows.empty()) return TriggerState::missing;
  return rows[0][0].as<bool>() ? TriggerState::enabled : TriggerState::disabled;
}

void require_ids_to_spare(Connection& connection) {
  // Without privileges on the sequence the view shows no value, while reading the sequence itself would fail.
  const auto rows = connection.run(R"(
SELECT FROM pg_sequences
WHERE schemaname = current_schema() AND sequencename = 'tokens_id_seq' AND last_value = 9223372036854775807)");
  if (rows.empty()) return;
  throw Error(
      ExitCode::schema, "the sequence tokens_id_seq is at 9223372036854775807, the largest possible id",
      in_schema("DELETE FROM @.tokens WHERE id = 9223372036854775807; "
                "SELECT setval('@.tokens_id_seq', coalesce((SELECT max(id) FROM @.tokens), 0) + 1, false);",
                quoted_schema(connection)));
}

std::string enable_trigger_statement(const std::string& schema, std::string_view table,
                                     std::string_view trigger) {
  return fmt::format("ALTER TABLE {}.{} ENABLE TRIGGER {};", schema, table, trigger);
}

std::string ids_in_order_statement(Connection& connection) {
  return fmt::format("ALTER SEQUENCE {} CACHE 1 INCREMENT 1 NO CYCLE;",
                     qualified_name(connection, "tokens_id_seq"));
}

bool gives_ids_in_order(Connection& connection) {
  return connection
      .run(R"(
SELECT seqcache = 1 AND seqincrement = 1 AND NOT seqcycle FROM pg_sequence
WHERE seqrelid = 'tokens_id_seq'::regclass)")[0][0]
      .as<bool>();
}

}  // namespace mailroom
