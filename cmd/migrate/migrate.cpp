// mailroom migrate: creates, changes and verifies the schema. Describes its commands and their options.

#include <fmt/format.h>
#include <iterator>
#include <set>
#include <sstream>

#include "cmd/command.hpp"
#include "cmd/migrate/migrate_action.hpp"

namespace mailroom::cmd {
namespace {

/// A command of migrate.
struct MigrateAction {
  const char* name;
  const char* summary;
  const char* takes;  ///< the options of migrate that it takes; others are refused
  ExitCode (*run)(const MigrateOptions& options, Context& context);
  /// Describes its own arguments; may be null.
  void (*add)(CommandSyntax& syntax, MigrateOptions& options) = nullptr;
};

constexpr const char* step_options = "--dry-run --show-sql --lock-timeout --wait --reason";

/// In help order; the first runs when migrate is given no command.
constexpr MigrateAction actions[] = {
    {"up", "apply every pending migration (the default)",
     "--to --dry-run --show-sql --lock-timeout --wait --reason", migrate_up},
    {"down", "undo the newest N migrations [1], or --all; show what that deletes, and ask", step_options,
     migrate_down,
     [](CommandSyntax& syntax, MigrateOptions& options) {
       const auto number = syntax.number<int>("N", options.count, {1, 1000}, "undo N migrations [1]");
       syntax.flag("--all", options.all, "undo every migration: drop the tables and all their data")
           .excludes(number);
     }},
    {"goto", "migrate up or down to version V; ask before going down", step_options, migrate_goto,
     [](CommandSyntax& syntax, MigrateOptions& options) {
       syntax.text("V", options.version, "migrate to this version").required();
     }},
    {"status", "show which migrations are applied, and when; exit code 5 unless all are", "--wait",
     migrate_status},
    {"verify", "compare the schema with what the migrations build; exit code 5 if it differs", "--wait",
     migrate_verify},
    {"baseline", "record version V of tables without a record, and run nothing; ask if they differ",
     "--wait --reason", migrate_baseline,
     [](CommandSyntax& syntax, MigrateOptions& options) {
       syntax
           .number<long>("V", options.baseline, {0, schema::embedded_migrations().back().version},
                         "record this version")
           .required();
     }},
    {"force", "clear a dirty state left by another tool: set version V and run nothing; ask first",
     "--wait --reason", migrate_force,
     [](CommandSyntax& syntax, MigrateOptions& options) {
       syntax.text("V", options.version, "set the version that the tables really have, or none").required();
     }},
    {"export", "write the migrations to directory DIR, for review or for golang-migrate", "", migrate_export,
     [](CommandSyntax& syntax, MigrateOptions& options) {
       syntax.text("DIR", options.directory, "write to this directory, which is created if necessary")
           .required();
     }},
};

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
  syntax.text("--to V", options.version, "stop at version V (up only)");
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
  auto chosen = std::make_shared<const MigrateAction*>(&actions[0]);
  for (const auto& action : actions) {
    auto command = syntax.command(action.name, action.summary, [syntax, &action, chosen] {
      refuse_foreign_options(syntax, action);
      *chosen = &action;
    });
    if (action.add != nullptr) action.add(command, *options);
  }
  add_options(syntax, *options);
  return [options, chosen](Context& context) { return (*chosen)->run(*options, context); };
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
    "run again unchanged. The functions of the schema are one set, which up makes anew after the newest "
    "version when its text has changed; goto with the newest version makes them anew in any case.\n\n"
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

}  // namespace mailroom::cmd
