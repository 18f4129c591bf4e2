// migrate status: which migrations are applied, and since when.

#include <fmt/format.h>
#include <map>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "cmd/migrate/migrate_action.hpp"
#include "cmd/terminal/text_table.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/schema_places.hpp"
#include "schema/verification.hpp"

namespace mailroom::cmd {
namespace {

/// When each version was last reached. golang-migrate records no times.
using Arrivals = std::map<std::int64_t, Moment>;

struct SchemaStatus {
  schema::SchemaState state;
  long newest = 0;
  Arrivals arrivals{};
  std::optional<Moment> functions_made{};

  const char* verdict() const {
    if (state.dirty) return "dirty";
    if (!state.version) return "empty";
    if (*state.version > newest) return "newer";
    return *state.version < newest ? "pending" : verdict_on_functions();
  }
  /// That on the newest version, whose functions may be of another mailroom.
  const char* verdict_on_functions() const {
    if (state.functions == schema::FunctionState::newer) return "newer";
    return state.functions == schema::FunctionState::current ? "current" : "pending";
  }
  /// `applied`, `pending`, or `newer`: of a newer mailroom.
  const char* functions_text() const {
    if (state.version.value_or(-1) > newest) return "newer";
    if (state.version.value_or(-1) < newest) return "pending";
    const std::string verdict = verdict_on_functions();
    return verdict == "newer" ? "newer" : verdict == "current" ? "applied" : "pending";
  }
  std::string functions_arrival() const {
    return functions_made && std::string(functions_text()) == "applied" ? moment_text(*functions_made)
                                                                        : std::string();
  }
  const char* verdict_on(const schema::Migration& migration) const {
    if (!state.version || migration.version > *state.version) return "pending";
    return state.dirty && migration.version == *state.version ? "dirty" : "applied";
  }
  std::string arrival_at(const schema::Migration& migration) const {
    const auto arrival = arrivals.find(migration.version);
    if (arrival == arrivals.end() || std::string(verdict_on(migration)) != "applied") return {};
    return moment_text(arrival->second);
  }
};

SchemaStatus read_status(db::Connection& connection) {
  SchemaStatus status{.state = schema::recognised(connection, schema::read_schema_state(connection)),
                      .newest = schema::embedded_migrations().back().version};
  if (!status.state.version) schema::refuse_wrong_schema(connection);
  connection.alone([&](pqxx::transaction_base& transaction) {
    for (const auto& change : schema::read_schema_history(transaction)) {
      if (change.direction == "down") continue;
      if (change.name == "functions") {
        status.functions_made = change.at;
      } else {
        status.arrivals[change.version] = change.at;
      }
    }
  });
  return status;
}

std::string versions_text(const SchemaStatus& status) {
  auto text = status.state.version ? fmt::format("{}: the schema has version {}, the newest is {}\n",
                                                 status.verdict(), *status.state.version, status.newest)
                                   : fmt::format("{}: nothing is applied, the newest version is {}\n",
                                                 status.verdict(), status.newest);
  TextTable table({{""}, {""}, {""}});
  for (const auto& migration : schema::embedded_migrations()) {
    table.add({migration.title(), status.verdict_on(migration), status.arrival_at(migration)});
  }
  table.add(
      {schema::embedded_functions().migration.title(), status.functions_text(), status.functions_arrival()});
  text += table.render(80, 2);
  if (status.state.dirty) text += schema::explain_dirty(schema::embedded_migrations(), status.state) + "\n";
  return text;
}

std::string versions_json(const SchemaStatus& status) {
  nlohmann::ordered_json object{{"state", status.verdict()},
                                {"version", nullptr},
                                {"newest", status.newest},
                                {"dirty", status.state.dirty},
                                {"migrations", nlohmann::ordered_json::array()}};
  if (status.state.version) object["version"] = *status.state.version;
  for (const auto& migration : schema::embedded_migrations()) {
    const auto arrival = status.arrival_at(migration);
    nlohmann::ordered_json entry{{"version", migration.version},
                                 {"name", migration.name},
                                 {"state", status.verdict_on(migration)},
                                 {"applied_at", nullptr}};
    if (!arrival.empty()) entry["applied_at"] = arrival;
    object["migrations"].push_back(entry);
  }
  object["functions"] = {{"state", status.functions_text()}, {"applied_at", nullptr}};
  const auto arrival = status.functions_arrival();
  if (!arrival.empty()) object["functions"]["applied_at"] = arrival;
  return json_text(object) + "\n";
}

}  // namespace

ExitCode migrate_status(const MigrateOptions& options, Context& context) {
  const auto connection = connect_to_migrate(options, context);
  const auto status = read_status(*connection);
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? versions_json(status) : versions_text(status));
  return std::string(status.verdict()) == "current" ? ExitCode::done : ExitCode::schema;
}

}  // namespace mailroom::cmd
