#include "queue/foundations.hpp"

#include <fmt/format.h>

namespace mailroom {

TriggerState trigger_state(Connection& connection, const std::string& table, const std::string& trigger) {
  const auto rows = connection.run(
      "SELECT tgenabled IN ('O', 'A') FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = $2", table,
      trigger);
  if (rows.empty()) return TriggerState::missing;
  return rows[0][0].as<bool>() ? TriggerState::enabled : TriggerState::disabled;
}

std::string enable_trigger_statement(const std::string& table, const std::string& trigger) {
  return fmt::format("ALTER TABLE {} ENABLE TRIGGER {}", table, trigger);
}

bool gives_ids_in_order(Connection& connection) {
  return connection
      .run(
          "SELECT seqcache = 1 AND seqincrement = 1 AND NOT seqcycle FROM pg_sequence "
          "WHERE seqrelid = 'tokens_id_seq'::regclass")[0][0]
      .as<bool>();
}

}  // namespace mailroom
