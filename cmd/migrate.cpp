#include <fmt/format.h>
#include <iterator>
#include <set>
#include <sstream>

#include "cmd/commands.hpp"
#include "cmd/migrate_action.hpp"

namespace mailroom {
namespace {

/// In the order of the help.
const std::vector<MigrateAction>& actions() {
  static const std::vector<MigrateAction> all{migrate_up_action, migrate_down_action, migrate_status_action,
                                              migrate_verify_action, migrate_baseline_action};
  return all;
}

/// Refuses an option of migrate itself that says nothing to `action`.
void refuse_foreign_options(const CLI::App& app, const MigrateAction& action) {
  std::istringstream words(action.takes);
  const std::set<std::string> taken{std::istream_iterator<std::string>(words), {}};
  for (const auto* option : app.get_options()) {
    const auto name = option->get_name();
    if (option->count() == 0 || name.find("--help") != std::string::npos || taken.count(name) > 0) continue;
    throw CLI::ValidationError(fmt::format("mailroom migrate {} takes no option '{}'", action.name, name));
  }
}

Run add_migrate(CLI::App& app, Overrides& /*overrides*/) {
  auto options = std::make_shared<MigrateOptions>();
  auto chosen = std::make_shared<MigrateRun>();
  app.require_subcommand(0, 1);
  for (const auto& action : actions()) {
    auto* sub = app.add_subcommand(action.name, action.summary)->fallthrough();
    auto run = action.add(*sub);
    if (!*chosen) *chosen = run;  // the first one is what bare migrate does
    sub->callback([&app, &action, chosen, run] {
      refuse_foreign_options(app, action);
      *chosen = run;
    });
  }
  app.add_option("--reason", options->reason, "why, for the record")->option_text("TEXT");
  return [options, chosen](Context& context) { return (*chosen)(*options, context); };
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
