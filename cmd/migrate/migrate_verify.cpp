// migrate verify, baseline and force: compare the schema, or record its version and run nothing.

#include <fmt/format.h>

#include "base/json.hpp"
#include "cmd/migrate/migrate_action.hpp"
#include "cmd/terminal/context.hpp"
#include "schema/schema_places.hpp"

namespace mailroom::cmd {
namespace {

/// Throws Error(schema) if another version is recorded, since overwriting it would skip migrations or run
/// them twice; also if the schema is dirty or has none of our tables.
void require_claimable(db::Connection& connection, const schema::SchemaState& state, long version) {
  if (state.dirty) schema::require_plannable(schema::embedded_migrations(), state);
  if (state.version && !state.unrecorded && *state.version != version) {
    throw Error(ExitCode::schema, fmt::format("version {} is already recorded", *state.version),
                fmt::format("mailroom migrate goto {} runs the migrations to that version", version));
  }
  if (schema::has_tables_of_our_names(connection)) return;
  schema::refuse_wrong_schema(connection);
  throw Error(ExitCode::schema, "there is nothing to record: none of mailroom's tables exists",
              "mailroom migrate creates them");
}

}  // namespace

ExitCode migrate_verify(const MigrateOptions& options, Context& context) {
  const auto connection = connect_to_migrate(options, context);
  const auto verification = schema::verify_schema(*connection);
  if (verification.match == schema::SchemaMatch::not_ours) schema::require_recognised(verification);
  if (context.global().output == OutputFormat::json) {
    context.print(json_text(verification_object(verification)) + "\n");
  } else {
    context.print(render_verification(verification, context));
  }
  return verification.is_sound() ? ExitCode::done : ExitCode::schema;
}

ExitCode migrate_baseline(const MigrateOptions& options, Context& context) {
  MigrationSession session(options, context);
  require_claimable(*session.connection, session.migrator.begin(), options.baseline);
  const auto verification = schema::verify_before_claim(*session.connection, options.baseline);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.print(render_differences(verification, context));
  if (!verification.is_sound()) {
    confirm(context, fmt::format("record version {} of the schema {} although {}?", verification.version,
                                 verification.schema, verification.differ_text()));
  }
  session.migrator.claim(options.baseline);
  if (json) {
    auto object = verification_object(verification);
    object["state"] = "recorded";
    object["recorded"] = true;
    context.print(json_text(object) + "\n");
  } else {
    context.say(fmt::format("recorded: the schema {} has version {}; nothing was run\n", verification.schema,
                            verification.version));
  }
  return ExitCode::done;
}

ExitCode migrate_force(const MigrateOptions& options, Context& context) {
  const auto version =
      options.version == "none" ? std::nullopt : std::optional(read_version(options.version));
  MigrationSession session(options, context);
  const auto state = session.migrator.begin();
  if (!state.dirty) {
    if (!state.version) schema::refuse_wrong_schema(*session.connection);
    throw Error(ExitCode::schema,
                fmt::format("the schema is not dirty: it has {}", version_text(state.version)),
                "force only clears a dirty state; mailroom migrate goto V runs the migrations to V");
  }
  confirm(context, fmt::format("set the schema, dirty at version {}, to {} and run nothing?",
                               state.version.value_or(-1), version_text(version)));
  session.migrator.force(schema::embedded_migrations(), version);
  if (context.global().output == OutputFormat::text) {
    context.say(fmt::format("the schema now has {}; nothing was run\n", version_text(version)));
  }
  return ExitCode::done;
}

}  // namespace mailroom::cmd
