#include <fmt/format.h>

#include "cmd/migrate/migrate_action.hpp"
#include "cmd/migrate/migrate_verify_report.hpp"
#include "cmd/terminal/confirm.hpp"
#include "schema/migrator.hpp"

namespace mailroom {
namespace {

/// Throws Error(schema) if another version is recorded, since overwriting it would skip migrations or run
/// them twice; also if the schema is dirty or has none of our tables.
void require_claimable(Connection& connection, const SchemaState& state, long version) {
  if (state.dirty) require_plannable(embedded_migrations(), state);
  if (state.version && !state.unrecorded && *state.version != version) {
    throw Error(ExitCode::schema, fmt::format("version {} is already recorded", *state.version),
                fmt::format("mailroom migrate goto {} runs the migrations to that version", version));
  }
  if (has_tables_of_our_names(connection)) return;
  throw Error(ExitCode::schema, "there is nothing to record: none of mailroom's tables exists",
              "mailroom migrate creates them");
}

std::string question_about(const Verification& verification) {
  return fmt::format("record version {} of the schema {} although {}?", verification.version,
                     verification.schema,
                     differ_text(verification.drift.differences.size() + verification.edited.size()));
}

void print_recorded(const Verification& verification, Context& context) {
  if (context.global().output == OutputFormat::json) {
    auto object = verification_object(verification);
    object["state"] = "recorded";
    object["recorded"] = true;
    return print_object(object, context.out());
  }
  context.say(fmt::format("recorded: the schema {} has version {}; nothing was run\n", verification.schema,
                          verification.version));
}

ExitCode run_baseline(const MigrateOptions& options, long version, Context& context) {
  const auto connection = connect_to_change_schema(options, context);
  Migrator migrator(*connection, schema_author(options), {.wait = wait_of(options)});
  require_claimable(*connection, migrator.begin(), version);
  const auto verification = verify_before_claim(*connection, version);
  if (context.global().output == OutputFormat::text) {
    context.print(render_differences(verification, paint_for(context)));
  }
  if (!verification.is_sound()) confirm(context, question_about(verification));
  migrator.claim(version);
  print_recorded(verification, context);
  return ExitCode::done;
}

MigrateRun add_baseline(CommandSyntax& syntax) {
  auto version = std::make_shared<long>(0);
  syntax.number<long>("V", *version, {0, embedded_migrations().back().version}, "record this version")
      .required();
  return [version](const MigrateOptions& options, Context& context) {
    return run_baseline(options, *version, context);
  };
}

}  // namespace

const MigrateAction migrate_baseline_action{
    "baseline", "record version V of tables without a record, and run nothing; ask if they differ",
    "--wait --reason", add_baseline};

}  // namespace mailroom
