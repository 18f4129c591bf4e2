// migrate up, down and goto: each step as it runs, and a question before data is deleted.

#include <algorithm>
#include <atomic>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/migrate/migrate_action.hpp"
#include "cmd/terminal/context.hpp"
#include "cmd/terminal/text_table.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/configured_schema.hpp"
#include "schema/migration_plan.hpp"
#include "schema/schema_places.hpp"
#include "schema/verification.hpp"

namespace mailroom::cmd {
namespace {

const char* direction_text(const schema::MigrationStep& step) {
  return step.direction == schema::Direction::up ? "up" : "down";
}

/// `up    0_init              `, as an SQL comment if the SQL is shown above it.
std::string beginning(const schema::MigrationStep& step, bool below_sql) {
  return fmt::format("{}{:<4}  {:<26}", below_sql ? "-- " : "", direction_text(step),
                     step.migration->title());
}

/// `in 12 ms`, `in 1m30s`
std::string took_text(Milliseconds took) {
  constexpr Milliseconds precise{10'000};
  if (took < precise) return fmt::format("in {} ms", took.count());
  return "in " + format_duration(std::chrono::duration_cast<std::chrono::seconds>(took));
}

/// Prints each step as a line of text or a JSON object. On a terminal the line starts when the step begins.
class StepPrinter final : public schema::MigrationObserver {
 public:
  StepPrinter(const MigrateOptions& options, Context& context) : options_(options), context_(context) {}
  /// Ends the line of a step that failed.
  ~StepPrinter() override {
    try {
      end_line();
    } catch (const Error&) {
      within_line_ = false;  // the output is closed, and the exception in flight says why
    }
  }
  StepPrinter(const StepPrinter&) = delete;
  StepPrinter& operator=(const StepPrinter&) = delete;

  void begins(const schema::MigrationStep& step) override {
    if (is_json()) return;
    if (options_.show_sql) context_.print(fmt::format("-- {}\n{}", step.file(), step.text()));
    if (!context_.out().is_terminal()) return;
    context_.print(beginning(step, options_.show_sql));
    within_line_ = true;
  }

  void ended(const schema::MigrationStep& step, Milliseconds took) override {
    if (is_json()) {
      nlohmann::ordered_json line{{"version", step.migration->version},
                                  {"name", step.migration->name},
                                  {"direction", direction_text(step)},
                                  {"duration_ms", took.count()},
                                  {"dry_run", options_.dry_run}};
      if (options_.show_sql) line["sql"] = step.text();
      return context_.print(json_text(line) + "\n");
    }
    const auto begun = within_line_.exchange(false) ? std::string() : beginning(step, options_.show_sql);
    context_.print(begun + took_text(took) + "\n");
  }

  void locked_out(const schema::MigrationStep& step, const std::string& holder, Milliseconds pause) override {
    constexpr Milliseconds usual{200};
    const auto message = fmt::format("{} did not get its locks{}; retrying in {}", step.file(),
                                     holder.empty() ? "" : ", the oldest transaction belongs to " + holder,
                                     format_duration(pause));
    if (pause <= usual) return context_.log().debug(message);
    end_line();
    context_.log().warn(message);
  }

  /// Ends a line that a step has begun. Also for the thread that watches for waits, while the step runs.
  void end_line() {
    if (within_line_.exchange(false)) context_.print("\n");
  }

 private:
  bool is_json() const { return context_.global().output == OutputFormat::json; }

  const MigrateOptions& options_;
  Context& context_;
  std::atomic<bool> within_line_ = false;
};

/// What going down deletes, one line per table or column: `  tokens   1,000 rows`.
std::string render_losses(const std::vector<schema::Loss>& losses, std::size_t width) {
  TextTable table({{""}, {"", TextTable::Align::right}, {""}});
  for (const auto& loss : losses) {
    const auto* what =
        loss.column.empty() ? (loss.rows == 1 ? "row" : "rows") : (loss.rows == 1 ? "value" : "values");
    table.add({shown_text(loss.name()), with_thousands(loss.rows), what});
  }
  return table.render(width, 2);
}

/// Before steps down, prints what they delete and asks for confirmation.
void ask_before_losing(const MigrateOptions& options, Context& context, db::Connection& connection,
                       const schema::MigrationSteps& steps) {
  if (steps.empty() || steps.front().direction == schema::Direction::up) return;
  const auto& newest = *std::ranges::find_if(
      steps, [](const schema::MigrationStep& step) { return !step.migration->is_function_set(); });
  const auto losses = schema::count_losses(connection, steps);
  std::int64_t rows = 0;
  for (const auto& loss : losses)
    rows += loss.rows;
  const auto way = fmt::format("from version {} down to {}", newest.migration->version,
                               version_text(steps.back().version_after()));
  const auto what = "deletes " + (rows == 0 ? std::string("no rows") : counted(rows, "row"));
  if (rows > 0) {
    context.err().write(printable_lines(
        fmt::format("migrating {} deletes:\n{}", way, render_losses(losses, context.err().width()))));
  }
  if (!options.dry_run) confirm(context, fmt::format("migrate {}, which {}?", way, what));
}

/// Mailroom's tables in another schema of the database are probably meant, not new ones.
void refuse_second_queue(Context& context, db::Connection& connection, const schema::SchemaState& state,
                         const schema::MigrationSteps& steps) {
  if (state.version) return;
  if (steps.empty()) return schema::refuse_wrong_schema(connection);
  const auto place = schema::passed_over(connection);
  if (!place || context.global().yes) return;
  const std::string here = connection.run("SELECT current_schema()").text();
  const auto error = schema::elsewhere(connection, {*place});
  throw Error(
      error.code(), error.what(),
      fmt::format("migrate --yes makes a second, empty queue in the schema {}; for the one there is: {}",
                  here, error.hint()));
}

/// Where an application has its tables, mailroom's are among what its roles and schema tools are given. Asks
/// on a terminal; a script goes on, and its log says it.
void mind_neighbours(const MigrateOptions& options, Context& context, db::Connection& connection,
                     const schema::SchemaState& state) {
  if (state.version || options.dry_run || context.global().yes) return;
  const auto others = schema::neighbours(connection);
  if (others.empty()) return;
  const auto what = fmt::format(
      "the schema {} has {} of others, such as {}; what roles and schema tools may do there, they may do with mailroom's",
      shown_text(connection.run("SELECT current_schema()").text()),
      counted(static_cast<std::int64_t>(others.size()), "table"), shown_text(others.front()));
  if (can_ask(context)) return confirm(context, what + ". Make mailroom's tables there, too?");
  context.log().warn(what + "; a schema of its own is made by: mailroom --schema mailroom migrate");
}

/// Whether the configured schema is created if it does not exist.
enum class NoSchema { create, refuse };

/// Runs the steps that `plan` returns for a SchemaState.
template <typename Plan>
ExitCode carry_out(const MigrateOptions& options, Context& context, NoSchema no_schema, const Plan& plan) {
  MigrationSession session(options, context);
  if (no_schema == NoSchema::create && !options.dry_run)
    schema::create_configured_schema(*session.connection);
  const auto state = schema::recognised(*session.connection, session.migrator.begin());
  const schema::MigrationSteps steps = plan(state);
  refuse_second_queue(context, *session.connection, state, steps);
  if (!steps.empty()) mind_neighbours(options, context, *session.connection, state);
  ask_before_losing(options, context, *session.connection, steps);
  StepPrinter printer(options, context);
  const auto waits = context.watch_waits(*session.connection, "migrate", [&] { printer.end_line(); });
  session.migrator.run(state, steps, printer);
  if (context.global().output == OutputFormat::json) return ExitCode::done;
  const auto tell = [&](const std::string& text) {
    return options.show_sql ? context.out().write("-- " + text) : context.say(text);
  };
  if (steps.empty()) {
    tell(fmt::format(
        "nothing to do: the schema has {}{}\n", version_text(state.version),
        state.functions == schema::FunctionState::newer ? ", with the functions of a newer mailroom" : ""));
  } else if (options.dry_run) {
    tell(fmt::format("dry run: everything was rolled back; the schema still has {}\n",
                     version_text(state.version)));
  }
  return ExitCode::done;
}

}  // namespace

ExitCode migrate_up(const MigrateOptions& options, Context& context) {
  const auto to = options.version.empty() ? std::nullopt : std::optional(read_version(options.version));
  return carry_out(options, context, NoSchema::create, [&](const schema::SchemaState& state) {
    return schema::with_functions(schema::plan_up(schema::embedded_migrations(), state, to), state,
                                  schema::embedded_functions().migration);
  });
}

ExitCode migrate_down(const MigrateOptions& options, Context& context) {
  const auto count = options.all ? std::nullopt : std::optional(options.count);
  return carry_out(options, context, NoSchema::refuse, [&](const schema::SchemaState& state) {
    return schema::with_functions(schema::plan_down(schema::embedded_migrations(), state, count), state,
                                  schema::embedded_functions().migration);
  });
}

ExitCode migrate_goto(const MigrateOptions& options, Context& context) {
  const auto to = read_version(options.version);
  return carry_out(options, context, NoSchema::create, [&](const schema::SchemaState& state) {
    return schema::with_functions(schema::plan_goto(schema::embedded_migrations(), state, to), state,
                                  schema::embedded_functions().migration, true);
  });
}

}  // namespace mailroom::cmd
