// Migrates a schema step by step while applications use it: the lock that lets one migrator at a time do so,
// the statements of one migration, and the steps.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/migration_plan.hpp"
#include "schema/statements.hpp"

namespace mailroom::schema {

/// The key of golang-migrate 4's advisory lock: CRC-32 (IEEE) of schema, table and database name with a NUL
/// between them, times 1486364155, modulo 2^32.
std::int64_t golang_migrate_key(const std::string& database, const std::string& schema,
                                const std::string& table);

/// Takes the advisory locks that allow only one migrator on this schema, until the session ends: both keys
/// that golang-migrate may use, since its command line takes the database name from the URL's path, with the
/// slash. Waits up to `wait` for another migrator. Retries instead of queueing, because a waiting session
/// would block CREATE INDEX CONCURRENTLY. Throws Error(locked) with the pid of the holder. Calls `tell`,
/// which may be empty, once with the holder after a second.
void take_migration_lock(db::Connection& connection, Milliseconds wait,
                         const std::function<void(const std::string& text)>& tell = {});

/// Runs one step statement by statement, so that an error can name the statement and its line.
class MigrationRun {
 public:
  MigrationRun(db::Connection& connection, const MigrationStep& step);

  const MigrationStep& step() const { return step_; }

  /// True for a single CONCURRENTLY statement, which cannot run in a transaction.
  bool runs_alone() const { return is_concurrent(statements_); }

  /// Runs the step within the caller's transaction; removes CONCURRENTLY from a CONCURRENTLY statement.
  void run(pqxx::transaction_base& transaction);
  /// Runs the step outside a transaction. First drops an invalid index of an earlier attempt.
  void run_alone();

  /// The error to report for a failure of run(), run_alone() or the following commit.
  Error explained(const db::DatabaseError& error) const;

 private:
  void drop_invalid_index();
  std::string hint_for(const db::DatabaseError& error) const;

  db::Connection& connection_;
  const MigrationStep& step_;
  std::vector<Statement> statements_;
  const Statement* current_ = nullptr;
};

/// The session with the oldest transaction that holds locks on tables of the schema and has been open for at
/// least `at_least`: `pid 12 (psql), whose transaction has been open for 3m`; empty if there is none.
std::string oldest_holder(db::Connection& connection, Milliseconds at_least);

class MigrationRun;

struct MigratorOptions {
  bool dry_run = false;  ///< run all steps in one transaction and roll it back
  /// The maximum time that a statement waits for a lock, while later writers of that table wait behind it;
  /// the first attempts wait less. Below the server's deadlock_timeout (1 s), so that in a deadlock the
  /// migration fails, not the application.
  Milliseconds lock_timeout{500};
  Milliseconds wait{0};  ///< maximum wait for another migrator to end
  /// Called once with the other migrator after a second; may be empty.
  std::function<void(const std::string& text)> tell{};
  /// The pauses before further attempts at a migration that did not get its locks, in which writers proceed;
  /// about a minute in total with the attempts.
  std::vector<Milliseconds> pauses = default_pauses();

  static std::vector<Milliseconds> default_pauses();
};

/// Receives the progress of a migrator.
class MigrationObserver {
 public:
  virtual ~MigrationObserver() = default;
  virtual void begins(const MigrationStep& /*step*/) {}
  /// The step was committed, or run in a dry run. `took` is the time of the successful attempt.
  virtual void ended(const MigrationStep& /*step*/, Milliseconds /*took*/) {}
  /// The step did not get its locks within lock_timeout. `holder`: the session that probably holds them, or
  /// empty.
  virtual void locked_out(const MigrationStep& /*step*/, const std::string& /*holder*/,
                          Milliseconds /*pause*/) {}
};

/// Runs schema migrations on one session. Only one migrator at a time can work on a schema.
class Migrator {
 public:
  Migrator(db::Connection& connection, SchemaAuthor author, MigratorOptions options = {})
      : connection_(connection), author_(std::move(author)), options_(std::move(options)) {}

  /// Takes the lock until the session ends, then reads the recorded state; does not inspect tables without a
  /// record: see recognised(). Throws Error(locked).
  SchemaState begin();

  /// Runs each step, with its bookkeeping and history, in a transaction of its own: a failure leaves the
  /// version before it. A step with a single CONCURRENTLY statement runs outside a transaction, after
  /// dropping an invalid index of an earlier attempt, and its bookkeeping follows. First records tables that
  /// psql created (state.unrecorded). Throws Error(schema) with the failed statement, its line and
  /// PostgreSQL's message, Error(locked) if a step does not get its locks, Error(database) on a read-only
  /// server, ConnectionLost.
  void run(const SchemaState& state, const MigrationSteps& steps, MigrationObserver& observer);

  /// Records `version` (nullopt: nothing applied) as clean without running a migration.
  void force(const std::vector<Migration>& migrations, std::optional<long> version);

  /// Records `version` as a baseline without running a migration.
  void claim(long version);

 private:
  void dry_run(const SchemaState& state, const MigrationSteps& steps, MigrationObserver& observer);
  void apply(const MigrationStep& step, MigrationObserver& observer);
  Milliseconds attempt(const MigrationStep& step, MigrationRun& run, Milliseconds lock_timeout);
  void record(pqxx::transaction_base& transaction, const MigrationStep& step, Milliseconds took);

  db::Connection& connection_;
  SchemaAuthor author_;
  MigratorOptions options_;
};

}  // namespace mailroom::schema
