// Makes the sessions of all servers, databases and roles alike.
#pragma once

#include <pqxx/pqxx>
#include <string>

#include "base/clock.hpp"

namespace mailroom {

/// What the settings of a session depend on.
struct SessionFacts {
  int pid = 0;      ///< of the server process that answered
  int version = 0;  ///< of the server: 150004 for 15.4
  std::string encoding{};
  bool in_recovery = false;
  bool schema_exists = true;  ///< the configured one; true without one
  bool may_use_schema = true;
  std::string search_path{};  ///< quoted as SET needs it; empty: the role's
};

/// Reads SessionFacts; $1 is the configured schema, or empty.
extern const char* const session_facts_sql;
SessionFacts read_session_facts(const pqxx::row& row, const std::string& schema);

/// The statements that give a session, or with `for_transaction` the transaction that has just begun, the
/// settings that every command relies on, whatever the role, the database or the server has set: PostgreSQL's
/// own defaults, without JIT and time limits. `statement_limit` of zero: none.
std::string session_settings(const SessionFacts& facts, Milliseconds statement_limit, bool for_transaction);

}  // namespace mailroom
