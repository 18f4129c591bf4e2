#pragma once

#include <string>
#include <vector>

namespace mailroom {

/// One version of the schema: the files migrations/N_name.up.sql and N_name.down.sql.
struct Migration {
  int version;
  std::string name;
  std::string up;
  std::string down;
};

/// All migrations in this binary, by version, from 0 without gaps.
const std::vector<Migration>& embedded_migrations();

}  // namespace mailroom
