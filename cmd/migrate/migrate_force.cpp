#include <fmt/format.h>

#include "cmd/migrate/migrate_action.hpp"
#include "cmd/terminal/confirm.hpp"
#include "schema/migrator.hpp"

namespace mailroom {
namespace {

ExitCode run_force(const MigrateOptions& options, const std::string& text, Context& context) {
  const auto version = text == "none" ? std::nullopt : std::optional(read_version(text));
  if (version) require_known_version(embedded_migrations(), *version);
  const auto connection = connect_to_change_schema(options, context);
  Migrator migrator(*connection, schema_author(options), {.wait = wait_of(options)});
  const auto state = migrator.begin();
  if (!state.dirty) {
    throw Error(ExitCode::schema,
                fmt::format("the schema is not dirty: it has {}", version_text(state.version)),
                "force only clears a dirty state; mailroom migrate goto V runs the migrations to V");
  }
  confirm(context, fmt::format("set the schema, dirty at version {}, to {} and run nothing?",
                               state.version.value_or(-1), version_text(version)));
  migrator.force(embedded_migrations(), version);
  if (context.global().output == OutputFormat::text) {
    context.say(fmt::format("the schema now has {}; nothing was run\n", version_text(version)));
  }
  return ExitCode::done;
}

MigrateRun add_force(CommandSyntax& syntax) {
  auto version = std::make_shared<std::string>();
  syntax.text("V", *version, "set the version that the tables really have, or none").required();
  return [version](const MigrateOptions& options, Context& context) {
    return run_force(options, *version, context);
  };
}

}  // namespace

const MigrateAction migrate_force_action{
    "force", "clear a dirty state left by another tool: set version V and run nothing; ask first",
    "--wait --reason", add_force};

}  // namespace mailroom
