#pragma once

#include <functional>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "schema/migration_plan.hpp"
#include "schema/statements.hpp"

namespace mailroom {

/// The text of one step, statement by statement, so that a failure is told with the statement and its line.
class MigrationRun {
 public:
  MigrationRun(Connection& connection, const MigrationStep& step);

  /// One CONCURRENTLY statement, which no transaction can hold.
  bool runs_alone() const { return is_concurrent(statements_); }

  /// Within the caller's transaction, a CONCURRENTLY statement without that word.
  void run(pqxx::transaction_base& transaction);
  /// Outside a transaction. Drops first what an earlier attempt left as an invalid index.
  void run_alone();

  /// What the user is told of a failure of run(), run_alone() or of the commit behind it.
  Error explained(const DatabaseError& error) const;

 private:
  void drop_invalid_index();
  std::string hint_for(const DatabaseError& error) const;

  Connection& connection_;
  const MigrationStep& step_;
  std::vector<Statement> statements_;
  const Statement* current_ = nullptr;
};

/// For the rest of the transaction: lock_timeout, and none of the time limits of the role, which are meant
/// for an application's statements.
void set_limits(pqxx::transaction_base& transaction, Milliseconds lock_timeout);

/// The session with the oldest transaction that holds locks on our tables, if that is open for `at_least`:
/// `pid 12 (psql), whose transaction is open for 3m`; empty when there is none.
std::string oldest_holder(Connection& connection, Milliseconds at_least);

/// Runs `work` with a clock.
Milliseconds timed(const std::function<void()>& work);

}  // namespace mailroom
