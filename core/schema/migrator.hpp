#pragma once

#include <functional>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/migration_plan.hpp"

namespace mailroom {

/// Carries out steps of the schema on one session, one migrator at a time a database.
class Migrator {
 public:
  using Planner = std::function<std::vector<MigrationStep>(const SchemaState&)>;
  using Progress = std::function<void(const MigrationStep&, Milliseconds)>;

  Migrator(Connection& connection, SchemaAuthor author)
      : connection_(connection), author_(std::move(author)) {}

  /// Takes the lock, plans from what the database says then, and carries out each step together with its
  /// bookkeeping and history in one transaction of its own: a failure leaves the version before it. Tables
  /// that psql made are recorded first as the version that they fit. `progress` hears of each step that is
  /// committed. Throws Error: locked (another migrator), schema (the step that failed and PostgreSQL's
  /// message).
  void run(const Planner& plan, const Progress& progress);

  /// Takes the lock, until the session ends, and reads what the database says then. Throws Error(locked).
  SchemaState begin();

  /// Records `version`, as a baseline, and runs nothing.
  void claim(long version);

 private:
  void lock();
  /// Returns how long it took.
  Milliseconds apply(const MigrationStep& step);

  Connection& connection_;
  SchemaAuthor author_;
};

}  // namespace mailroom
