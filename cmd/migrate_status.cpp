#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/migrate_action.hpp"

namespace mailroom {
namespace {

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

ExitCode run_status(const MigrateOptions& options, Context& context) {
  const auto connection = connect_to_migrate(options, context);
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

MigrateRun add_status(CLI::App& /*app*/) {
  return run_status;
}

}  // namespace

const MigrateAction migrate_status_action{"status", "say which are applied; exit code 5 unless all are", "",
                                          add_status};

}  // namespace mailroom
