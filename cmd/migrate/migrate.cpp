#include <fmt/format.h>
#include <iterator>
#include <set>
#include <sstream>

#include "cmd/commands.hpp"
#include "cmd/migrate/migrate_action.hpp"

namespace mailroom {
namespace {

/// In help order; the first runs when migrate is given no command.
const std::vector<MigrateAction>& actions() {
  static const std::vector<MigrateAction> all{
      migrate_up_action,     migrate_down_action,   migrate_goto_action,
      migrate_status_action, migrate_verify_action, migrate_baseline_action,
      migrate_force_action,  migrate_export_action, migrate_new_action};
  return all;
}

/// Throws Error(usage) for an option of migrate itself that `action` does not take.
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
  syntax.text("--to V", options.to, "stop at version V (up only)");
  syntax.flag("--dry-run", options.dry_run, "run all migrations in one transaction, and roll it back");
  syntax.flag("--show-sql", options.show_sql, "show the SQL of each migration");
  syntax.duration(
      "--lock-timeout DURATION", options.lock_timeout, {Milliseconds{1}, longest},
      "wait at most this long for a lock, which blocks writers meanwhile; then let them through and retry, "
      "for about a minute [500ms]");
  syntax.duration("--wait DURATION", options.wait, {Milliseconds{0}, longest},
                  "wait this long for the database, and for another migration to end [0s]");
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
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
    "  mailroom migrate             apply all pending migrations\n"
    "  mailroom migrate --dry-run   run them all, and roll them back\n"
    "  mailroom migrate status      list them; exit code 5 unless all are applied\n"
    "\n"
    "A migration and its record are one transaction: a failure leaves the version\n"
    "unchanged and never a dirty state. A dry run takes the same locks and holds them\n"
    "to its end: on a busy database, use a copy. The table schema_migrations and its\n"
    "lock are those of golang-migrate.\n",
    add_migrate,
    "Creates and changes the schema with migrations that are embedded in the program; no other file is "
    "needed. Each migration runs in one transaction with its record: a failed migration leaves the database "
    "unchanged, and the error shows the statement, its line, and PostgreSQL's message. The one exception is "
    "a migration that is a single CREATE INDEX CONCURRENTLY, which cannot run in a transaction; it can be "
    "run again unchanged.\n\n"
    "On a database in use, a statement that waits for a lock blocks every later writer of that table. "
    "Therefore a statement waits at most --lock-timeout, lets the writers through, and tries again, for "
    "about a minute; then migrate ends with exit status 6 and names the most likely holder of the lock. "
    "Each migration states at its beginning what it locks and what it rewrites; mailroom migrate export DIR "
    "writes the migrations for review.\n\n"
    "Only one migrator works on a schema at a time, golang-migrate included; a second one ends with exit "
    "status 6, or waits for --wait. Tables that psql or golang-migrate created from the original schema are "
    "migrated from their current version, without losing a row. If their version is not recorded, they are "
    "compared with what each migration builds, and refused if they match none; mailroom migrate verify "
    "shows the differences, and mailroom migrate baseline V records version V without running anything. "
    "Only another tool can leave a dirty state. mailroom refuses it with a hint; migrate force exists for "
    "this case only.\n\n"
    "Without a command, migrate runs migrate up. Going down deletes the data that only the newer version "
    "holds: migrate shows how many rows of each table, and asks on a terminal; without a terminal --yes is "
    "required.\n\n"
    "migrate verify builds the migrations in a separate schema, in a transaction that is rolled back. It "
    "compares tables, columns, constraints, indexes, triggers, functions, types and sequences, and compares "
    "the text of each migration with the text that was applied. It needs the right to create schemas in the "
    "database, and locks no existing object.\n\n"
    "Every step is recorded in the database with its time, the user and host, the program's version, and "
    "the text of --reason."};

}  // namespace mailroom
