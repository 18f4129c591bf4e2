#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/migration_plan.hpp"

namespace mailroom {

class MigrationRun;

struct MigratorOptions {
  bool dry_run = false;  ///< all in one transaction, which is rolled back
  /// How long a statement waits for a lock, with every later writer of that table behind it, at the most: the
  /// first attempts wait less. Below the server's deadlock_timeout (1 s), so that of two that wait for each
  /// other it is not the application that fails.
  Milliseconds lock_timeout{500};
  Milliseconds wait{0};  ///< for another migrator to end
  /// How long writers are let through before each further attempt at a migration that did not get its locks:
  /// a minute in all.
  std::vector<Milliseconds> pauses = default_pauses();

  static std::vector<Milliseconds> default_pauses();
};

/// Hears what a migrator does.
class MigrationObserver {
 public:
  virtual ~MigrationObserver() = default;
  virtual void begins(const MigrationStep& /*step*/) {}
  /// Committed; in a dry run: carried out. `took`: the attempt that succeeded.
  virtual void ended(const MigrationStep& /*step*/, Milliseconds /*took*/) {}
  /// The locks were not to be had within lock_timeout; `holder` says who most likely has them, or is empty.
  virtual void locked_out(const MigrationStep& /*step*/, const std::string& /*holder*/,
                          Milliseconds /*pause*/) {}
};

/// Carries out steps of the schema on one session, one migrator at a time a schema.
class Migrator {
 public:
  Migrator(Connection& connection, SchemaAuthor author, MigratorOptions options = {})
      : connection_(connection), author_(std::move(author)), options_(std::move(options)) {}

  /// Takes the lock, until the session ends, and reads what the database says then, without a look at tables
  /// that have no record: see recognised(). Throws Error(locked).
  SchemaState begin();

  /// Carries out each step together with its bookkeeping and history in one transaction of its own: a failure
  /// leaves the version before it. A step that is one CONCURRENTLY statement runs outside a transaction,
  /// after an invalid index of an earlier attempt was dropped, and the bookkeeping follows it. Tables that
  /// psql made
  /// (`state`) are recorded first. Throws Error: schema (the statement that failed, its line,
  /// PostgreSQL's message), locked (locks not to be had), ConnectionLost.
  void run(const SchemaState& state, const MigrationSteps& steps, MigrationObserver& observer);

  /// Makes `version` (none: nothing applied) the recorded one, clean, and runs nothing.
  void force(const std::vector<Migration>& migrations, std::optional<long> version);

  /// Makes `version` the recorded one, as a baseline, and runs nothing.
  void claim(long version);

 private:
  void rehearse(const SchemaState& state, const MigrationSteps& steps, MigrationObserver& observer);
  void adopt(pqxx::transaction_base& transaction, const SchemaState& state);
  void apply(const MigrationStep& step, MigrationObserver& observer);
  Milliseconds attempt(const MigrationStep& step, MigrationRun& run, Milliseconds lock_timeout);
  void record(pqxx::transaction_base& transaction, const MigrationStep& step, Milliseconds took);

  Connection& connection_;
  SchemaAuthor author_;
  MigratorOptions options_;
};

}  // namespace mailroom
