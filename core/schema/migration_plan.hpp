#pragma once

#include <optional>
#include <vector>

#include "schema/migration.hpp"

namespace mailroom {

/// What a database says of its schema. No version: nothing has been applied.
struct SchemaState {
  std::optional<long> version;
  bool dirty = false;  ///< golang-migrate broke off on its way to `version`, which is -1 for nothing applied
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
  const std::string& text() const { return direction == Direction::up ? migration->up : migration->down; }
  /// `4_queue_tables.up.sql`
  std::string file() const;
};

using MigrationSteps = std::vector<MigrationStep>;

/// Throws Error with ExitCode::schema when nothing may be done from `state`: it is dirty, or newer than all
/// of `migrations`.
void require_plannable(const std::vector<Migration>& migrations, const SchemaState& state);

/// Every step up to version `to`, or to the newest. Throws Error(usage) for a version that does not exist or
/// lies below the present one.
MigrationSteps plan_up(const std::vector<Migration>& migrations, const SchemaState& state,
                       std::optional<long> to = std::nullopt);

/// `count` steps down, newest first, or fewer where there are fewer; without a count all.
MigrationSteps plan_down(const std::vector<Migration>& migrations, const SchemaState& state,
                         std::optional<int> count);

/// The steps to version `to`, up or down. Throws Error(usage) for a version that does not exist.
MigrationSteps plan_goto(const std::vector<Migration>& migrations, const SchemaState& state, long to);

/// Throws Error(usage) unless `migrations` have `version`.
void require_known_version(const std::vector<Migration>& migrations, long version);

/// What a dirty state means and how it is mended, for the hint of an error.
std::string explain_dirty(const std::vector<Migration>& migrations, const SchemaState& state);

}  // namespace mailroom
