// What mailroom requires of triggers and the token sequence, and the SQL that fixes them.
#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom {

enum class TriggerState { enabled, disabled, missing };

/// A trigger that fires only on replicas counts as disabled.
TriggerState trigger_state(Connection& connection, const std::string& table, const std::string& trigger);

/// Throws Error(schema) when the token sequence has reached the largest bigint: no range of ids can end after
/// it.
void require_ids_to_spare(Connection& connection);

/// The statement that enables a disabled trigger; `schema` is quoted.
std::string enable_trigger_statement(const std::string& schema, std::string_view table,
                                     std::string_view trigger);

/// True if the token sequence assigns one id at a time, each larger than the previous one.
bool gives_ids_in_order(Connection& connection);

/// The statement that makes the token sequence do so.
std::string ids_in_order_statement(Connection& connection);

}  // namespace mailroom
