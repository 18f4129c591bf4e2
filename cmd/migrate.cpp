#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/who.hpp"
#include "cmd/commands.hpp"
#include "cmd/confirm.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/migrator.hpp"

namespace mailroom {
namespace {

enum class MigrateAction { up, down, status };

struct MigrateOptions {
  MigrateAction action = MigrateAction::up;
  int steps = 1;
  std::string reason;
};

std::string version_text(const std::optional<long>& version) {
  return version ? std::to_string(*version) : "none";
}

void print_step(Context& context, const MigrationStep& step, Milliseconds took) {
  const auto& migration = *step.migration;
  const char* direction = step.direction == Direction::up ? "up" : "down";
  if (context.global().output == OutputFormat::json) {
    const nlohmann::ordered_json line{{"version", migration.version},
                                      {"name", migration.name},
                                      {"direction", direction},
                                      {"milliseconds", took.count()}};
    return context.out().write(line.dump() + "\n");
  }
  context.out().write(fmt::format("{:<4}  {:<20}  in {} ms\n", direction,
                                  fmt::format("{}_{}", migration.version, migration.name), took.count()));
}

ExitCode carry_out(const MigrateOptions& options, Context& context, Connection& connection,
                   const Migrator::Planner& plan) {
  bool any = false;
  const SchemaAuthor author{
      .actor = operator_name(), .reason = options.reason, .program_version = MAILROOM_VERSION};
  Migrator(connection, author).run(plan, [&](const MigrationStep& step, Milliseconds took) {
    any = true;
    print_step(context, step, took);
  });
  if (!any && context.global().output == OutputFormat::text) {
    const auto version = read_schema_state(connection).version;
    context.out().write(fmt::format("nothing to do: the schema has version {}\n", version_text(version)));
  }
  return ExitCode::done;
}

ExitCode run_up(const MigrateOptions& options, Context& context) {
  const auto connection = context.connect("migrate");
  return carry_out(options, context, *connection,
                   [](const SchemaState& state) { return plan_up(embedded_migrations(), state); });
}

ExitCode run_down(const MigrateOptions& options, Context& context) {
  const auto connection = context.connect("migrate");
  const auto steps = plan_down(embedded_migrations(), read_schema_state(*connection), options.steps);
  if (!steps.empty()) {
    const auto target = version_text(steps.back().version_after());
    confirm(context,
            fmt::format(
                "take the schema down from version {} to {}, with the data that only the newer one holds?",
                steps.front().migration->version, target));
  }
  return carry_out(options, context, *connection, [&](const SchemaState& state) {
    return plan_down(embedded_migrations(), state, options.steps);
  });
}

std::string status_text(const SchemaState& state, long newest) {
  if (state.dirty) return "dirty";
  if (!state.version) return "empty";
  return *state.version < newest ? "pending" : *state.version > newest ? "newer" : "current";
}

std::string render_status(const std::string& verdict, const SchemaState& state, long newest) {
  auto text =
      state.version
          ? fmt::format("{}: the schema has version {}, the newest is {}\n", verdict, *state.version, newest)
          : fmt::format("{}: nothing is applied, the newest version is {}\n", verdict, newest);
  for (const auto& migration : embedded_migrations()) {
    const bool reached = state.version && migration.version <= *state.version;
    const bool broken_off = state.dirty && migration.version == *state.version;
    text += fmt::format("  {}_{:<20} {}\n", migration.version, migration.name,
                        broken_off ? "dirty"
                        : reached  ? "applied"
                                   : "pending");
  }
  return text;
}

ExitCode run_status(Context& context) {
  const auto connection = context.connect("migrate");
  const auto state = read_schema_state(*connection);
  const auto newest = static_cast<long>(embedded_migrations().size()) - 1;
  const auto verdict = status_text(state, newest);
  if (context.global().output == OutputFormat::json) {
    nlohmann::ordered_json object{
        {"state", verdict}, {"version", nullptr}, {"newest", newest}, {"dirty", state.dirty}};
    if (state.version) object["version"] = *state.version;
    context.out().write(object.dump() + "\n");
  } else {
    context.out().write(render_status(verdict, state, newest));
  }
  return verdict == "current" ? ExitCode::done : ExitCode::schema;
}

Run add_migrate(CLI::App& app, Overrides& /*overrides*/) {
  auto options = std::make_shared<MigrateOptions>();
  app.require_subcommand(0, 1);
  const auto add_action = [&](MigrateAction action, const char* name, const char* help) {
    auto* sub = app.add_subcommand(name, help)->fallthrough();
    sub->callback([options, action] { options->action = action; });
    return sub;
  };
  add_action(MigrateAction::up, "up", "apply every migration that is pending (the default)");
  auto* down =
      add_action(MigrateAction::down, "down", "undo the newest N migrations; asks, unless --yes is given");
  down->add_option("N", options->steps, "how many [1]")->check(whole_number(1, 1000));
  app.add_option("--reason", options->reason, "why, for the record")->option_text("TEXT");
  add_action(MigrateAction::status, "status", "say which are applied; exit code 5 unless all are");
  return [options](Context& context) {
    switch (options->action) {
      case MigrateAction::down:
        return run_down(*options, context);
      case MigrateAction::status:
        return run_status(context);
      case MigrateAction::up:
        break;
    }
    return run_up(*options, context);
  };
}

}  // namespace

const Command migrate_command{
    "migrate", "manage the schema",
    "Examples:\n"
    "  mailroom migrate            bring the schema up to date\n"
    "  mailroom migrate status     which migrations are applied, and which pending\n"
    "  mailroom migrate down 1     undo the newest\n",
    add_migrate,
    "The schema is made and changed by migrations that are embedded in the program, so that nothing "
    "else is needed to bring a database up to date. Each migration runs in a transaction together "
    "with the record of it: one that fails leaves the database as it was before. Only one migrator "
    "works on a database at a time; another one ends with exit status 6.\n\n"
    "Tables that psql or golang-migrate made from the original schema are continued from where they "
    "are, without losing a row. Without a command, migrate does the same as migrate up. Going down "
    "removes the data that only the newer version holds, and is asked about on a terminal; without a "
    "terminal --yes is needed.\n\n"
    "Every step is recorded in the database with its time, the person and host, the program's "
    "version, and the --reason that was given."};

}  // namespace mailroom
