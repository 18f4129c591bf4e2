// The migrations, which the build embeds by cmake/write_migrations.cmake.
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

  /// `4_queue_tables`
  std::string title() const { return std::to_string(version) + "_" + name; }
};

/// All migrations in this binary, by version, from 0 without gaps.
const std::vector<Migration>& embedded_migrations();

}  // namespace mailroom
