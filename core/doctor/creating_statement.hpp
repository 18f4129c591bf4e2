#pragma once

#include <string>
#include <vector>

#include "schema/migration.hpp"

namespace mailroom {

/// The statement of the migrations that creates an object.
struct CreatingStatement {
  std::string migration;  ///< `3_token_ids`; empty if no migration creates the object
  std::string text;       ///< on one line, up to and including the first semicolon
};

/// The last CREATE of `kind` (TRIGGER, INDEX, FUNCTION, TABLE) `name` in `migrations`. The text is incomplete
/// for a statement with an inner semicolon, such as a function.
CreatingStatement creating_statement(const std::vector<Migration>& migrations, const std::string& kind,
                                     const std::string& name);

}  // namespace mailroom
