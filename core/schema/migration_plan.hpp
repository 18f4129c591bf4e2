// Which migrations must run to get from one version of the schema to another, and what going down deletes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "schema/function_set.hpp"
#include "schema/migration.hpp"

namespace mailroom::schema {

/// The recorded state of a schema. No version: nothing has been applied.
struct SchemaState {
  std::optional<long> version;
  bool dirty = false;  ///< golang-migrate failed on the way to `version` (-1: no version)
  /// mailroom's tables exist without bookkeeping, as psql leaves them. `version` is then 0, a placeholder:
  /// see recognised().
  bool unrecorded = false;
  bool lacks_tokens = false;  ///< a version is recorded, but there is no table tokens
  bool lacks_rows = false;    ///< that every database has; Migrator::begin() looks
  FunctionState functions = FunctionState::absent;
};

enum class Direction { up, down };

struct MigrationStep {
  const Migration* migration;
  Direction direction;

  /// The version after this step; nullopt: nothing applied. The functions go with the newest version.
  std::optional<long> version_after() const {
    if (direction == Direction::up || migration->is_function_set()) return migration->version;
    return migration->version == 0 ? std::nullopt : std::optional<long>(migration->version - 1);
  }
  const std::string& text() const { return direction == Direction::up ? migration->up : migration->down; }
  /// `7_queue.up.sql`
  std::string file() const;
};

using MigrationSteps = std::vector<MigrationStep>;

/// Throws Error(schema) if `state` is dirty or newer than all of `migrations`.
void require_plannable(const std::vector<Migration>& migrations, const SchemaState& state);

/// The steps up to version `to`, or to the newest. Throws Error(usage) if `to` does not exist or is below the
/// current version.
MigrationSteps plan_up(const std::vector<Migration>& migrations, const SchemaState& state,
                       std::optional<long> to = std::nullopt);

/// At most `count` steps down, newest first; without a count all.
MigrationSteps plan_down(const std::vector<Migration>& migrations, const SchemaState& state,
                         std::optional<int> count);

/// The steps to version `to`, up or down. Throws Error(usage) for a version that does not exist.
MigrationSteps plan_goto(const std::vector<Migration>& migrations, const SchemaState& state, long to);

/// `steps` with those of the set `functions`: it is dropped before any step down, and made after the last
/// step up to the newest version, also without such a step if the set is absent or older. A newer one stays,
/// unless `again`, which makes it in any case.
MigrationSteps with_functions(MigrationSteps steps, const SchemaState& state, const Migration& functions,
                              bool again = false);

/// Throws Error(usage) unless `migrations` contains `version`.
void require_known_version(const std::vector<Migration>& migrations, long version);

/// Explains a dirty state and how to fix it, for the hint of an error.
std::string explain_dirty(const std::vector<Migration>& migrations, const SchemaState& state);

/// Data that a migration deletes: the rows of a table, or some of them, or the values of a column.
struct Loss {
  std::string table;
  std::string column{};     ///< empty: whole rows
  std::string condition{};  ///< `WHERE ...`: only these rows; empty for all
  std::int64_t rows = 0;

  /// `tokens`, `accounts.login`, `jobs WHERE job_type <> 'mailroom'`
  std::string name() const {
    return column.empty() ? table + (condition.empty() ? "" : " " + condition) : table + "." + column;
  }
};

/// What a migration declares to delete, without counts: its lines `-- deletes: table tokens`,
/// `-- deletes: column accounts.login` and `-- deletes: rows tokens WHERE consumed_at IS NULL`.
std::vector<Loss> declared_losses(const std::string& sql);

/// What `steps` will delete, in order, with current counts: rows with a condition count once, for the first
/// that deletes them. Omits missing tables and columns.
std::vector<Loss> count_losses(db::Connection& connection, const MigrationSteps& steps);

}  // namespace mailroom::schema
