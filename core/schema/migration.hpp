#pragma once

#include <string>
#include <vector>

namespace mailroom {

/// One step of the schema, as the pair of files migrations/N_name.{up,down}.sql holds it.
struct Migration {
  int version;
  std::string name;
  std::string up;
  std::string down;
};

/// All that this binary was built with, by version, from 0 without gaps.
const std::vector<Migration>& embedded_migrations();

}  // namespace mailroom
