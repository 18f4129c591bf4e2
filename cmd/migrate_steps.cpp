#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/confirm.hpp"
#include "cmd/migrate_action.hpp"
#include "schema/migrator.hpp"

namespace mailroom {
namespace {

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
  Migrator(connection, schema_author(options)).run(plan, [&](const MigrationStep& step, Milliseconds took) {
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
  const auto connection = connect_to_migrate(options, context);
  return carry_out(options, context, *connection,
                   [](const SchemaState& state) { return plan_up(embedded_migrations(), state); });
}

ExitCode run_down(const MigrateOptions& options, int count, Context& context) {
  const auto connection = connect_to_migrate(options, context);
  const auto steps = plan_down(embedded_migrations(), read_schema_state(*connection), count);
  if (!steps.empty()) {
    const auto target = version_text(steps.back().version_after());
    confirm(context,
            fmt::format(
                "take the schema down from version {} to {}, with the data that only the newer one holds?",
                steps.front().migration->version, target));
  }
  return carry_out(options, context, *connection,
                   [&](const SchemaState& state) { return plan_down(embedded_migrations(), state, count); });
}

MigrateRun add_up(CLI::App& /*app*/) {
  return run_up;
}

MigrateRun add_down(CLI::App& app) {
  auto count = std::make_shared<int>(1);
  app.add_option("N", *count, "how many [1]")->check(whole_number(1, 1000));
  return
      [count](const MigrateOptions& options, Context& context) { return run_down(options, *count, context); };
}

}  // namespace

const MigrateAction migrate_up_action{"up", "apply every migration that is pending (the default)", "--reason",
                                      add_up};

const MigrateAction migrate_down_action{"down", "undo the newest N migrations; asks, unless --yes is given",
                                        "--reason", add_down};

}  // namespace mailroom
