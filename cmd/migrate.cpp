#include <fmt/format.h>
#include <iterator>
#include <set>
#include <sstream>

#include "cmd/commands.hpp"
#include "cmd/migrate_action.hpp"

namespace mailroom {
namespace {

/// In the order of the help; the first is what bare migrate does.
const std::vector<MigrateAction>& actions() {
  static const std::vector<MigrateAction> all{
      migrate_up_action,     migrate_down_action,   migrate_goto_action,
      migrate_status_action, migrate_verify_action, migrate_baseline_action,
      migrate_force_action,  migrate_export_action, migrate_new_action};
  return all;
}

/// Refuses an option of migrate itself that says nothing to `action`.
void refuse_foreign_options(const CommandSyntax& syntax, const MigrateAction& action) {
  std::istringstream words(action.takes);
  const std::set<std::string> taken{std::istream_iterator<std::string>(words), {}};
  for (const auto& name : syntax.given()) {
    if (taken.count(name) > 0) continue;
    throw Error(ExitCode::usage, fmt::format("mailroom migrate {} takes no option '{}'", action.name, name),
                fmt::format("mailroom migrate {} --help shows the options", action.name));
  }
}

void add_options(CommandSyntax& syntax, MigrateOptions& options) {
  constexpr Milliseconds longest = std::chrono::hours(1);
  syntax.text("--to V", options.to, "up: stop at version V");
  syntax.flag("--dry-run", options.dry_run, "run it all in one transaction, and roll that back");
  syntax.flag("--show-sql", options.show_sql, "show the text of each migration");
  syntax.duration(
      "--lock-timeout DURATION", options.lock_timeout, {Milliseconds{1}, longest},
      "how long a statement waits for a lock, and writers behind it; then it lets them through and "
      "tries again, for about a minute [500ms]");
  syntax.duration("--wait DURATION", options.wait, {Milliseconds{0}, longest},
                  "keep trying so long to reach the database, and for another migration to end [0s]");
  syntax.text("--reason TEXT", options.reason, "why, for the record");
}

Run add_migrate(CommandSyntax& syntax) {
  auto options = std::make_shared<MigrateOptions>();
  auto chosen = std::make_shared<MigrateRun>();
  for (const auto& action : actions()) {
    auto run = std::make_shared<MigrateRun>();
    auto command = syntax.command(action.name, action.summary, [syntax, &action, chosen, run] {
      refuse_foreign_options(syntax, action);
      *chosen = *run;
    });
    *run = action.add(command);
    if (!*chosen) *chosen = *run;
  }
  add_options(syntax, *options);
  return [options, chosen](Context& context) { return (*chosen)(*options, context); };
}

}  // namespace

const Command migrate_command{
    "migrate", "manage the schema",
    "Examples:\n"
    "  mailroom migrate             bring the schema up to date\n"
    "  mailroom migrate --dry-run   try it: run it all, and roll it back\n"
    "  mailroom migrate status      which are applied; exits 5 unless all are\n"
    "\n"
    "A migration and the record of it are one transaction: what fails leaves the\n"
    "version as it was, and never a dirty state. A dry run takes the same locks, up\n"
    "to its end: on a busy database try a copy. The table schema_migrations and its\n"
    "lock are golang-migrate's.\n",
    add_migrate,
    "The schema is made and changed by migrations that are embedded in the program, so that nothing "
    "else is needed to bring a database up to date. Each migration runs in a transaction together "
    "with the record of it: one that fails leaves the database as it was before, and the error shows the "
    "statement, its line, and what PostgreSQL says. The one exception is a migration that is a single "
    "CREATE INDEX CONCURRENTLY, which no transaction can hold; it can be run again as it is.\n\n"
    "On a database in use a statement that waits for a lock makes every later writer of that table wait "
    "behind it. Therefore it waits no longer than --lock-timeout, lets the others through, and tries "
    "again, for about a minute; then migrate ends with exit status 6, and says who most likely holds the "
    "lock. Each migration says at its beginning what it locks and what it rewrites: mailroom migrate "
    "export DIR writes them for reading.\n\n"
    "Only one migrator works on a schema at a time, golang-migrate included; another one ends with exit "
    "status 6, or waits as long as --wait says. Tables that psql or golang-migrate made from the original "
    "schema are continued from where they are, without losing a row: without a record of their version they "
    "are compared with what each migration builds, and refused where they fit none; mailroom migrate verify "
    "shows what differs, and mailroom migrate baseline V records a version as it is. A dirty state can only "
    "come from "
    "another tool, and is refused with what to do; migrate force is for nothing else.\n\n"
    "Without a command, migrate does the same as migrate up. Going down removes the data that only the "
    "newer version holds: it says how many rows of what, and asks on a terminal; without a terminal --yes "
    "is needed.\n\n"
    "migrate verify builds the migrations in a schema of its own, in a transaction that is rolled back, and "
    "compares tables, columns, constraints, indexes, triggers, functions, types and sequences with it, and "
    "the text of each migration with the one that was applied. It needs the right to create schemas in the "
    "database, and locks nothing that exists.\n\n"
    "Every step is recorded in the database with its time, the person and host, the program's "
    "version, and the --reason that was given."};

}  // namespace mailroom
