// Which of mailroom's tables row security hides rows of, and how to fix that.
#pragma once

#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

/// The tables that the migrations create, and those in which mailroom records them.
const std::vector<std::string>& mailroom_tables();
/// Those that a consumer reads after it has found the version.
const std::vector<std::string>& tables_of_consumers();
/// Those that a consumer without a sink that has outcomes reads.
const std::vector<std::string>& tables_of_claims();

/// The tables with rows that row security hides from this session's user, and the statements that fix it.
struct HiddenRows {
  std::string tables;      ///< their names, empty if there are none
  std::string fix;         ///< for a superuser
  std::string owners_fix;  ///< for the owner of the tables; empty if it is long
};
HiddenRows hidden_rows(Connection& connection, const std::vector<std::string>& tables);

/// Throws Error(failed) if row security hides rows of the tables that a command reads, because results would
/// be incomplete.
void require_all_rows(Connection& connection, const std::vector<std::string>& tables = mailroom_tables());

}  // namespace mailroom
