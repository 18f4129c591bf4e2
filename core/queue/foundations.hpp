#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom {

enum class TriggerState { enabled, disabled, missing };

/// A trigger that fires for replicas alone counts as disabled.
TriggerState trigger_state(Connection& connection, const std::string& table, const std::string& trigger);

/// The tables of ours that row security hides rows of from this session's user, and the statement that ends
/// it.
struct HiddenRows {
  std::string tables;  ///< their names, empty if there are none
  std::string mend;
};
HiddenRows hidden_rows(Connection& connection);

/// Throws Error where rows are hidden: what is said of a part would be taken for the whole.
void require_all_rows(Connection& connection);

/// Throws Error with ExitCode::schema when the sequence of the tokens stands at the largest bigint: no range
/// of ids can end behind that one.
void require_ids_to_spare(Connection& connection);

/// The statement that makes a disabled trigger fire again.
std::string enable_trigger_statement(const std::string& table, const std::string& trigger);

/// True if the sequence of the tokens hands out one id at a time, each larger than the one before.
bool gives_ids_in_order(Connection& connection);

/// The statement that makes it do so.
constexpr auto ids_in_order_statement = "ALTER SEQUENCE tokens_id_seq CACHE 1 INCREMENT 1 NO CYCLE";

}  // namespace mailroom
