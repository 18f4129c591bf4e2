// Looks at the trigger and the sequences, with the statement that repairs each as the hint.

#include "consumer/session_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "db/qualified_name.hpp"
#include "queue/preconditions.hpp"
#include "queue/sequences.hpp"

namespace mailroom {
namespace {

void check_trigger(Connection& connection) {
  const std::string table = "tokens";
  const std::string trigger = "before_token_insert";
  const auto state = trigger_state(connection, table, trigger);
  if (state == TriggerState::missing) {
    throw Error(ExitCode::schema, "the trigger before_token_insert on tokens is missing",
                "without it the queue can lose tokens that commit late; migration 3_token_ids creates it");
  }
  if (state == TriggerState::disabled) {
    throw Error(ExitCode::schema, "the trigger before_token_insert on tokens is disabled",
                enable_trigger_statement(quoted_schema(connection), table, trigger));
  }
}

void check_sequence(Connection& connection) {
  require_ids_to_spare(connection);
  if (!gives_ids_in_order(connection)) {
    throw Error(ExitCode::schema, "the sequence tokens_id_seq does not give out ids one by one, in order",
                ids_in_order_statement(connection));
  }
  if (const auto statements = statements_for_ordered_ids(connection); !statements.empty()) {
    throw Error(ExitCode::schema,
                "a sequence of the queue's batches or gaps does not give out ids one by one, in order",
                fmt::format("{}", fmt::join(statements, " ")));
  }
}

}  // namespace

void check_queue_preconditions(Connection& connection) {
  check_trigger(connection);
  check_sequence(connection);
}

}  // namespace mailroom
