// Tables and functions of mailroom's names in other schemas, which statements of an application find instead.
#pragma once

#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::status {

/// Something of the name of mailroom's that a search path finds first.
struct Shadow {
  std::string kind;   ///< `table`, `view`, `foreign table` or `function`
  std::string name;   ///< with its schema, quoted
  std::string path;   ///< the search path
  std::string whose;  ///< `the role app`, `this database`; empty: the path of whoever has no other
};

/// Those that the search path of this session's role, of the database or of another role finds before
/// mailroom's; one for each object. A schema that has a mailroom of its own shadows only what comes after it
/// on one path. Runs within the caller's transaction.
std::vector<Shadow> find_shadows(pqxx::transaction_base& transaction);

}  // namespace mailroom::status
