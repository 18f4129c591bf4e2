// Refuses versions that do not exist, and explains a dirty state by the files that may have caused it.

#include "schema/migration_plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom::schema {
namespace {

/// The steps between two versions; -1: nothing applied.
MigrationSteps steps_between(const std::vector<Migration>& migrations, long from, long to) {
  MigrationSteps steps;
  for (auto version = from + 1; version <= to; ++version)
    steps.push_back({&migrations[static_cast<std::size_t>(version)], Direction::up});
  for (auto version = from; version > to; --version)
    steps.push_back({&migrations[static_cast<std::size_t>(version)], Direction::down});
  return steps;
}

/// `WHERE ...`, or empty: the rows of `loss` without those that `earlier` ones delete.
std::string rows_of(const Loss& loss, const std::vector<Loss>& earlier) {
  constexpr std::string_view where = "WHERE ";
  std::vector<std::string> conditions;
  if (!loss.condition.empty()) conditions.push_back("(" + loss.condition.substr(where.size()) + ")");
  for (const auto& other : earlier) {
    if (other.table == loss.table && !other.condition.empty())
      conditions.push_back("(" + other.condition.substr(where.size()) + ") IS NOT TRUE");
  }
  return conditions.empty() ? std::string() : fmt::format("{}{}", where, joined(conditions, " AND "));
}

long newest_of(const std::vector<Migration>& migrations) {
  return static_cast<long>(migrations.size()) - 1;
}

}  // namespace

std::string MigrationStep::file() const {
  const bool is_up = direction == Direction::up;
  if (is_up && migration->is_function_set()) return migration->title() + ".sql";
  return fmt::format("{}.{}.sql", migration->title(), is_up ? "up" : "down");
}

std::string explain_dirty(const std::vector<Migration>& migrations, const SchemaState& state) {
  const auto newest = newest_of(migrations);
  const auto version = state.version.value_or(-1);
  std::string ways;
  std::string answers;
  if (version >= 0 && version <= newest) {
    ways = migrations[static_cast<std::size_t>(version)].title() + ".up.sql";
    answers = fmt::format("mailroom migrate force {}", version == 0 ? "none" : std::to_string(version - 1));
  }
  if (version + 1 <= newest && version >= -1) {
    ways += (ways.empty() ? "" : " or ") + migrations[static_cast<std::size_t>(version + 1)].title() +
            ".down.sql";
    answers += (answers.empty() ? "" : " (or ") + fmt::format("mailroom migrate force {}", version + 1) +
               (ways.find(" or ") == std::string::npos ? "" : " for the down)");
  }
  if (ways.empty())
    return "this mailroom has no migration to or from that version: use the tool and files that made it";
  return fmt::format(
      "golang-migrate or a similar tool failed in {}. It runs a file as one transaction, so probably all of "
      "it was rolled back: fix the cause, then run {}, which only sets the version, and mailroom migrate. "
      "If the file committed a part, undo that part by hand first",
      ways, answers);
}

void require_plannable(const std::vector<Migration>& migrations, const SchemaState& state) {
  if (state.dirty) {
    throw Error(ExitCode::schema,
                fmt::format("the schema is marked dirty at version {}", state.version.value_or(-1)),
                explain_dirty(migrations, state));
  }
  const auto newest = newest_of(migrations);
  if (state.version && *state.version > newest) {
    throw Error(ExitCode::schema,
                fmt::format("the schema has version {}, and this mailroom knows versions up to {}",
                            *state.version, newest),
                "use the newer mailroom that made it");
  }
}

void require_known_version(const std::vector<Migration>& migrations, long version) {
  const auto newest = newest_of(migrations);
  if (version >= 0 && version <= newest) return;
  throw Error(ExitCode::usage, fmt::format("there is no version {}", version),
              fmt::format("this mailroom knows the versions 0 to {}", newest));
}

MigrationSteps plan_up(const std::vector<Migration>& migrations, const SchemaState& state,
                       std::optional<long> to) {
  require_plannable(migrations, state);
  if (to) require_known_version(migrations, *to);
  if (to && state.version && *to < *state.version) {
    throw Error(ExitCode::usage,
                fmt::format("the schema has version {}, which is above {}", *state.version, *to),
                fmt::format("mailroom migrate goto {} goes down to it", *to));
  }
  return steps_between(migrations, state.version.value_or(-1), to.value_or(newest_of(migrations)));
}

MigrationSteps plan_down(const std::vector<Migration>& migrations, const SchemaState& state,
                         std::optional<int> count) {
  require_plannable(migrations, state);
  const auto current = state.version.value_or(-1);
  return steps_between(migrations, current, count ? std::max(current - *count, -1L) : -1);
}

MigrationSteps with_functions(MigrationSteps steps, const SchemaState& state, const Migration& functions,
                              bool again) {
  if (!steps.empty() && steps.front().direction == Direction::down) {
    if (state.functions != FunctionState::absent) steps.insert(steps.begin(), {&functions, Direction::down});
    return steps;
  }
  const auto end = steps.empty() ? state.version : steps.back().version_after();
  const bool is_due = again || !steps.empty() || state.functions == FunctionState::absent ||
                      state.functions == FunctionState::older ||
                      state.functions == FunctionState::elsewhere || state.lacks_rows;
  if (end == functions.version && is_due) steps.push_back({&functions, Direction::up});
  return steps;
}

MigrationSteps plan_goto(const std::vector<Migration>& migrations, const SchemaState& state, long to) {
  require_plannable(migrations, state);
  require_known_version(migrations, to);
  return steps_between(migrations, state.version.value_or(-1), to);
}

std::vector<Loss> declared_losses(const std::string& sql) {
  std::vector<Loss> losses;
  std::istringstream lines(sql);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string dashes, deletes, kind, name;
    words >> dashes >> deletes >> kind >> name;
    const auto dot = std::min(name.find('.'), name.size());
    std::string condition;
    if (kind == "rows") std::getline(words, condition);
    condition = std::string(trimmed(condition));
    const bool is_valid =
        kind == "rows" ? condition.starts_with("WHERE ") : kind == (dot < name.size() ? "column" : "table");
    if (dashes != "--" || deletes != "deletes:" || !is_valid) continue;
    losses.push_back({.table = name.substr(0, dot),
                      .column = name.substr(std::min(dot + 1, name.size())),
                      .condition = condition});
  }
  return losses;
}

std::vector<Loss> count_losses(db::Connection& connection, const MigrationSteps& steps) {
  std::vector<Loss> losses;
  for (const auto& step : steps) {
    for (auto loss : declared_losses(step.text())) {
      const auto count = connection.run(
          "SELECT format('SELECT count(%s) FROM %I %s', coalesce(quote_ident(nullif($2::text, '')), '*'), "
          "$1::text, $3::text) FROM pg_attribute "
          "WHERE attrelid = to_regclass(format('%I.%I', current_schema(), $1::text)) AND NOT attisdropped "
          "AND $2::text IN ('', attname::text) LIMIT 1",
          loss.table, loss.column, rows_of(loss, losses));
      if (count.empty()) continue;
      loss.rows = connection.run(count.text()).value<std::int64_t>();
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

}  // namespace mailroom::schema
