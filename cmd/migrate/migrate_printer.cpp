#include "cmd/migrate/migrate_printer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/duration.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom {
namespace {

const char* direction_text(const MigrationStep& step) {
  return step.direction == Direction::up ? "up" : "down";
}

/// `up    0_init              `, as an SQL comment if the SQL is shown above it.
std::string beginning(const MigrationStep& step, bool below_sql) {
  const auto name = fmt::format("{}_{}", step.migration->version, step.migration->name);
  return fmt::format("{}{:<4}  {:<26}", below_sql ? "-- " : "", direction_text(step), name);
}

}  // namespace

StepPrinter::~StepPrinter() {
  try {
    end_line();
  } catch (const Error&) {
    within_line_ = false;  // the output is closed, and the exception in flight says why
  }
}

void StepPrinter::begins(const MigrationStep& step) {
  if (is_json()) return;
  if (options_.show_sql) context_.print(fmt::format("-- {}\n{}", step.file(), step.text()));
  if (!context_.out().is_terminal()) return;
  context_.print(beginning(step, options_.show_sql));
  within_line_ = true;
}

void StepPrinter::ended(const MigrationStep& step, Milliseconds took) {
  if (is_json()) {
    nlohmann::ordered_json line{{"version", step.migration->version},
                                {"name", step.migration->name},
                                {"direction", direction_text(step)},
                                {"milliseconds", took.count()},
                                {"dry_run", options_.dry_run}};
    if (options_.show_sql) line["sql"] = step.text();
    return context_.print(json_text(line) + "\n");
  }
  const auto begun = within_line_ ? std::string() : beginning(step, options_.show_sql);
  within_line_ = false;
  context_.print(begun + took_text(took) + "\n");
}

void StepPrinter::locked_out(const MigrationStep& step, const std::string& holder, Milliseconds pause) {
  constexpr Milliseconds usual{200};
  const auto message = fmt::format("{} did not get its locks{}; retrying in {}", step.file(),
                                   holder.empty() ? "" : ", the oldest transaction belongs to " + holder,
                                   format_duration(pause));
  if (pause <= usual) return context_.log().debug(message);
  end_line();
  context_.log().warn(message);
}

void StepPrinter::end_line() {
  if (within_line_) context_.print("\n");
  within_line_ = false;
}

std::string render_losses(const std::vector<Loss>& losses) {
  TextTable table({{""}, {"", TextTable::Align::right}, {""}});
  for (const auto& loss : losses) {
    const auto* what =
        loss.column.empty() ? (loss.rows == 1 ? "row" : "rows") : (loss.rows == 1 ? "value" : "values");
    table.add({shown_text(loss.name()), with_thousands(loss.rows), what});
  }
  return table.render(80, 2);
}

}  // namespace mailroom
