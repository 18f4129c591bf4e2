#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom {

enum class TriggerState { enabled, disabled, missing };

/// A trigger that fires for replicas alone counts as disabled.
TriggerState trigger_state(Connection& connection, const std::string& table, const std::string& trigger);

/// The statement that makes a disabled trigger fire again.
std::string enable_trigger_statement(const std::string& table, const std::string& trigger);

/// True if the sequence of the tokens hands out one id at a time, each larger than the one before.
bool gives_ids_in_order(Connection& connection);

/// The statement that makes it do so.
constexpr auto ids_in_order_statement = "ALTER SEQUENCE tokens_id_seq CACHE 1 INCREMENT 1 NO CYCLE";

}  // namespace mailroom
