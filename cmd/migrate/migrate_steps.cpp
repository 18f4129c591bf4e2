#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/migrate/migrate_printer.hpp"
#include "cmd/terminal/confirm.hpp"
#include "schema/recognition.hpp"

namespace mailroom {
namespace {

constexpr const char* step_options = "--dry-run --show-sql --lock-timeout --wait --reason";

using Planner = std::function<MigrationSteps(const SchemaState&)>;

MigratorOptions migrator_options(const MigrateOptions& options) {
  MigratorOptions result{.dry_run = options.dry_run, .wait = wait_of(options)};
  if (options.lock_timeout) result.lock_timeout = *options.lock_timeout;
  return result;
}

/// Before steps down, prints what they delete and asks for confirmation.
void ask_before_losing(const MigrateOptions& options, Context& context, Connection& connection,
                       const MigrationSteps& steps) {
  if (steps.empty() || steps.front().direction == Direction::up) return;
  const auto losses = count_losses(connection, steps);
  std::int64_t rows = 0;
  for (const auto& loss : losses)
    rows += loss.rows;
  const auto way = fmt::format("from version {} down to {}", steps.front().migration->version,
                               version_text(steps.back().version_after()));
  const auto what = rows == 0 ? std::string("deletes no rows")
                              : fmt::format("deletes {} row{}", with_thousands(rows), rows == 1 ? "" : "s");
  if (rows > 0) {
    context.err().write(
        printable_lines(fmt::format("migrating {} deletes:\n{}", way, render_losses(losses))));
  }
  if (!options.dry_run) confirm(context, fmt::format("migrate {}, which {}?", way, what));
}

ExitCode carry_out(const MigrateOptions& options, Context& context, const Planner& plan) {
  const auto settings = migrator_options(options);
  const auto connection = connect_to_change_schema(options, context);
  Migrator migrator(*connection, schema_author(options), settings);
  const auto state = recognised(*connection, migrator.begin());
  const auto steps = plan(state);
  ask_before_losing(options, context, *connection, steps);
  StepPrinter printer(options, context);
  migrator.run(state, steps, printer);
  if (context.global().output == OutputFormat::json) return ExitCode::done;
  const auto tell = [&](const std::string& text) {
    return options.show_sql ? context.out().write("-- " + text) : context.say(text);
  };
  if (steps.empty()) {
    tell(fmt::format("nothing to do: the schema has {}\n", version_text(state.version)));
  } else if (options.dry_run) {
    tell(fmt::format("dry run: everything was rolled back; the schema still has {}\n",
                     version_text(state.version)));
  }
  return ExitCode::done;
}

ExitCode run_up(const MigrateOptions& options, Context& context) {
  const auto to = options.to.empty() ? std::nullopt : std::optional(read_version(options.to));
  if (to) require_known_version(embedded_migrations(), *to);
  return carry_out(options, context,
                   [&](const SchemaState& state) { return plan_up(embedded_migrations(), state, to); });
}

MigrateRun add_up(CommandSyntax& /*syntax*/) {
  return run_up;
}

MigrateRun add_down(CommandSyntax& syntax) {
  auto count = std::make_shared<int>(1);
  auto all = std::make_shared<bool>(false);
  const auto number = syntax.number<int>("N", *count, {1, 1000}, "undo N migrations [1]");
  syntax.flag("--all", *all, "undo every migration: drop the tables and all their data").excludes(number);
  return [count, all](const MigrateOptions& options, Context& context) {
    return carry_out(options, context, [&](const SchemaState& state) {
      return plan_down(embedded_migrations(), state, *all ? std::nullopt : std::optional(*count));
    });
  };
}

MigrateRun add_goto(CommandSyntax& syntax) {
  auto version = std::make_shared<std::string>();
  syntax.text("V", *version, "migrate to this version").required();
  return [version](const MigrateOptions& options, Context& context) {
    const auto to = read_version(*version);
    require_known_version(embedded_migrations(), to);
    return carry_out(options, context,
                     [&](const SchemaState& state) { return plan_goto(embedded_migrations(), state, to); });
  };
}

}  // namespace

const MigrateAction migrate_up_action{"up", "apply every pending migration (the default)",
                                      "--to --dry-run --show-sql --lock-timeout --wait --reason", add_up};

const MigrateAction migrate_down_action{
    "down", "undo the newest N migrations [1], or --all; show what that deletes, and ask", step_options,
    add_down};

const MigrateAction migrate_goto_action{"goto", "migrate up or down to version V; ask before going down",
                                        step_options, add_goto};

}  // namespace mailroom
