#pragma once

#include <optional>
#include <vector>

#include "schema/migration.hpp"

namespace mailroom {

/// What a database says of its schema. No version: nothing has been applied.
struct SchemaState {
  std::optional<long> version;
  bool dirty = false;       ///< golang-migrate broke off in the middle
  bool unrecorded = false;  ///< tables of our names without bookkeeping, as psql leaves them; version is 0
                            ///< then, for want of a look at them: see recognised()
};

enum class Direction { up, down };

struct MigrationStep {
  const Migration* migration;
  Direction direction;

  /// The version that the database has afterwards.
  std::optional<long> version_after() const {
    if (direction == Direction::up) return migration->version;
    return migration->version == 0 ? std::nullopt : std::optional<long>(migration->version - 1);
  }
};

/// Throws Error with ExitCode::schema when nothing may be done from `state`: it is dirty, or newer than all
/// of `migrations`.
void require_plannable(const std::vector<Migration>& migrations, const SchemaState& state);

/// Every step up to the newest.
std::vector<MigrationStep> plan_up(const std::vector<Migration>& migrations, const SchemaState& state);

/// `count` steps down, newest first, or fewer where there are fewer.
std::vector<MigrationStep> plan_down(const std::vector<Migration>& migrations, const SchemaState& state,
                                     int count);

}  // namespace mailroom
