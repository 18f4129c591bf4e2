#include "schema/migration_plan.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace mailroom {

void require_plannable(const std::vector<Migration>& migrations, const SchemaState& state) {
  if (state.dirty) {
    throw Error(ExitCode::schema,
                fmt::format("the schema is marked dirty at version {}", state.version.value_or(0)),
                "another tool broke off in the middle of that migration: undo or finish its statements by "
                "hand, then write "
                "the version that is true, with dirty = false, into the table schema_migrations");
  }
  const auto newest = static_cast<long>(migrations.size()) - 1;
  if (state.version && *state.version > newest) {
    throw Error(ExitCode::schema,
                fmt::format("the schema has version {}, and this mailroom knows versions up to {}",
                            *state.version, newest),
                "use the newer mailroom that made it");
  }
}

std::vector<MigrationStep> plan_up(const std::vector<Migration>& migrations, const SchemaState& state) {
  require_plannable(migrations, state);
  std::vector<MigrationStep> steps;
  for (const auto& migration : migrations) {
    if (!state.version || migration.version > *state.version) steps.push_back({&migration, Direction::up});
  }
  return steps;
}

std::vector<MigrationStep> plan_down(const std::vector<Migration>& migrations, const SchemaState& state,
                                     int count) {
  require_plannable(migrations, state);
  std::vector<MigrationStep> steps;
  for (long version = state.version.value_or(-1); version >= 0 && count > 0; --version, --count) {
    steps.push_back({&migrations[static_cast<std::size_t>(version)], Direction::down});
  }
  return steps;
}

}  // namespace mailroom
