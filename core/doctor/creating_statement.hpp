#pragma once

#include <string>
#include <vector>

#include "schema/migration.hpp"

namespace mailroom {

/// Where the migrations make an object.
struct CreatingStatement {
  std::string migration;  ///< `3_token_ids`; empty if none of them does
  std::string text;       ///< in one line with its semicolon; of a function or table only the beginning
};

/// The last CREATE of `kind` (TRIGGER, INDEX, FUNCTION, TABLE) `name` in `migrations`. The text is whole for
/// what holds no semicolon.
CreatingStatement creating_statement(const std::vector<Migration>& migrations, const std::string& kind,
                                     const std::string& name);

}  // namespace mailroom
