// Runs the statements of one migration, and explains why one failed.
#pragma once

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "schema/migration_plan.hpp"
#include "schema/statements.hpp"

namespace mailroom {

/// Runs one step statement by statement, so that an error can name the statement and its line.
class MigrationRun {
 public:
  MigrationRun(Connection& connection, const MigrationStep& step);

  const MigrationStep& step() const { return step_; }

  /// True for a single CONCURRENTLY statement, which cannot run in a transaction.
  bool runs_alone() const { return is_concurrent(statements_); }

  /// Runs the step within the caller's transaction; removes CONCURRENTLY from a CONCURRENTLY statement.
  void run(pqxx::transaction_base& transaction);
  /// Runs the step outside a transaction. First drops an invalid index of an earlier attempt.
  void run_alone();

  /// The error to report for a failure of run(), run_alone() or the following commit.
  Error explained(const DatabaseError& error) const;

 private:
  void drop_invalid_index();
  std::string hint_for(const DatabaseError& error) const;

  Connection& connection_;
  const MigrationStep& step_;
  std::vector<Statement> statements_;
  const Statement* current_ = nullptr;
};

/// The session with the oldest transaction that holds locks on tables of the schema and has been open for at
/// least `at_least`: `pid 12 (psql), whose transaction has been open for 3m`; empty if there is none.
std::string oldest_holder(Connection& connection, Milliseconds at_least);

}  // namespace mailroom
