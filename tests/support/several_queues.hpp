#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom::test {

constexpr const char* recoveries_only = R"({"actions": ["password_recovery"], "priority": 10})";
constexpr const char* activations_only = R"({"actions": ["activation"]})";

/// Creates a queue with a definition as mailroom_queue_definition() returns it.
inline void make_queue(db::Connection& connection, const std::string& name, const std::string& definition,
                       std::int64_t cursor = 0) {
  connection.run("SELECT mailroom_create_queue($1, $2, $3::jsonb, 'token_insert')", name, cursor, definition);
}

inline void drop_queue(db::Connection& connection, const std::string& name) {
  connection.run("SELECT mailroom_drop_queue($1, 'token_insert')", name);
}

/// Pauses or resumes a queue as the operator `ops`.
inline void pause_queue(db::Connection& connection, const std::string& name, bool pause = true) {
  connection.run("SET mailroom.actor = 'ops'; SET mailroom.reason = 'relay moves'");
  connection.run("SELECT mailroom_pause_queue($1, $2, 'token_insert')", name, pause);
}

}  // namespace mailroom::test
