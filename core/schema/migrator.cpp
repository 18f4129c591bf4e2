// Tries each step with short lock timeouts and growing pauses, so that writers get through.

#include "schema/migrator.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

#include "base/clock.hpp"
#include "schema/completeness.hpp"

namespace mailroom::schema {
namespace {

/// True for errors that a retry may avoid once other sessions have released their locks.
bool is_about_locks(const db::DatabaseError& error) {
  return error.sqlstate() == "55P03" || error.sqlstate() == "40P01" || error.sqlstate() == "40001";
}

Error locked_out_for_good(db::Connection& connection, const MigrationStep& step, std::size_t attempts,
                          Milliseconds lock_timeout) {
  const auto holder = oldest_holder(connection, lock_timeout);
  const auto who =
      holder.empty()
          ? std::string("the tables are busy, but no transaction on them is long: try at a quieter time")
          : "the oldest transaction on its tables is that of " + holder + ": wait for it, or terminate it";
  return Error(ExitCode::locked,
               fmt::format("migration {} did not get its locks, in {} attempt{} of up to {}", step.file(),
                           attempts, attempts == 1 ? "" : "s", format_duration(lock_timeout)),
               who +
                   "; the migration was rolled back, and the version is unchanged. Writers wait behind "
                   "each attempt, up to --lock-timeout");
}

void require_writable(db::Connection& connection) {
  if (!connection.run("SELECT pg_is_in_recovery()").value<bool>()) return;
  throw Error(ExitCode::database, "the server is a standby, which is read-only",
              "connect to the primary; with several hosts add target_session_attrs=read-write");
}

/// Makes the server notice a killed client within 1 s; else a long statement would keep its locks to the end.
void notice_lost_clients(db::Connection& connection) {
  connection.run(
      "SELECT set_config(name, '1s', false) FROM (VALUES ('client_connection_check_interval')) s (name) "
      "WHERE current_setting(name, true) IS NOT NULL");
}

db::ConnectionLost cut_off(const MigrationStep& step, const db::ConnectionLost& error) {
  return db::ConnectionLost(
      fmt::format("the connection was lost in migration {}: {}", step.file(), error.what()),
      "the server has applied all of it or nothing: run mailroom migrate to continue");
}

/// For the rest of the transaction: sets lock_timeout and disables the role's other time limits, which are
/// meant for applications.
void set_limits(pqxx::transaction_base& transaction, Milliseconds lock_timeout) {
  db::Connection::execute(transaction, "SELECT set_config('lock_timeout', $1, true)",
                          std::to_string(lock_timeout.count()));
  db::Connection::execute(
      transaction,
      "SELECT set_config(name, '0', true) FROM (VALUES ('statement_timeout'), ('transaction_timeout'), "
      "('idle_in_transaction_session_timeout')) s (name) WHERE current_setting(name, true) IS NOT NULL");
}

/// Runs `work` and returns the time it took.
template <typename Work>
Milliseconds timed(const Work& work) {
  const auto started = steady_now();
  work();
  return std::chrono::duration_cast<Milliseconds>(steady_now() - started);
}

}  // namespace

std::vector<Milliseconds> MigratorOptions::default_pauses() {
  using namespace std::chrono_literals;
  return {50ms, 100ms, 200ms, 200ms, 200ms, 500ms, 500ms, 1s, 1s, 2s, 4s, 8s, 8s, 8s, 8s, 8s};
}

SchemaState Migrator::begin() {
  take_migration_lock(connection_, options_.wait, options_.tell);
  notice_lost_clients(connection_);
  auto state = read_schema_state(connection_);
  const bool is_newest =
      state.version == embedded_migrations().back().version && !state.dirty && !state.unrecorded;
  state.lacks_rows = is_newest && !missing_rows(connection_).empty();
  return state;
}

void Migrator::claim(long version) {
  require_writable(connection_);
  connection_.transact(
      [&](pqxx::work& transaction) { record_claim(transaction, version, "baseline", author_); });
}

void Migrator::run(const SchemaState& state, const MigrationSteps& steps, MigrationObserver& observer) {
  if (steps.empty() && !state.unrecorded) return;
  require_writable(connection_);
  if (options_.dry_run) return dry_run(state, steps, observer);
  if (state.unrecorded) {
    connection_.transact(
        [&](pqxx::work& transaction) { record_claim(transaction, *state.version, "adopt", author_); });
  }
  for (const auto& step : steps) {
    try {
      apply(step, observer);
    } catch (const db::ConnectionLost& error) {
      throw cut_off(step, error);
    }
  }
}

void Migrator::record(pqxx::transaction_base& transaction, const MigrationStep& step, Milliseconds took) {
  if (!step.migration->is_function_set()) record_version(transaction, step.version_after());
  record_history(transaction, *step.migration, step.direction == Direction::up ? "up" : "down", took,
                 author_);
}

void Migrator::dry_run(const SchemaState& state, const MigrationSteps& steps, MigrationObserver& observer) {
  std::optional<MigrationRun> run;
  try {
    connection_.dry_run([&](pqxx::work& transaction) {
      set_limits(transaction, options_.lock_timeout);
      if (state.unrecorded) record_claim(transaction, *state.version, "adopt", author_);
      for (const auto& step : steps) {
        run.emplace(connection_, step);
        observer.begins(step);
        const auto took = timed([&] { run->run(transaction); });
        record(transaction, step, took);
        observer.ended(step, took);
      }
    });
  } catch (const db::DatabaseError& error) {
    if (!run) throw;
    if (is_about_locks(error)) throw locked_out_for_good(connection_, run->step(), 1, options_.lock_timeout);
    throw run->explained(error);
  }
}

Milliseconds Migrator::attempt(const MigrationStep& step, MigrationRun& run, Milliseconds lock_timeout) {
  if (run.runs_alone()) {
    const auto took = timed([&] { run.run_alone(); });
    connection_.transact([&](pqxx::work& transaction) { record(transaction, step, took); });
    return took;
  }
  Milliseconds took{0};
  connection_.transact([&](pqxx::work& transaction) {
    took = timed([&] {
      set_limits(transaction, lock_timeout);
      run.run(transaction);
    });
    record(transaction, step, took);
  });
  return took;
}

void Migrator::apply(const MigrationStep& step, MigrationObserver& observer) {
  observer.begins(step);
  MigrationRun run(connection_, step);
  // If a migration and a writer wait for each other, both wait until lock_timeout: try often with short
  // limits.
  auto lock_timeout = std::min(options_.lock_timeout, Milliseconds(25));
  for (std::size_t failures = 0;; ++failures) {
    try {
      return observer.ended(step, attempt(step, run, lock_timeout));
    } catch (const db::DatabaseError& error) {
      if (!is_about_locks(error)) throw run.explained(error);
      if (failures == options_.pauses.size()) {
        throw locked_out_for_good(connection_, step, failures + 1, options_.lock_timeout);
      }
      observer.locked_out(step, oldest_holder(connection_, lock_timeout), options_.pauses[failures]);
      std::this_thread::sleep_for(options_.pauses[failures]);
      lock_timeout = std::min(options_.lock_timeout, 2 * lock_timeout);
    }
  }
}

void Migrator::force(const std::vector<Migration>& migrations, std::optional<long> version) {
  require_writable(connection_);
  static const Migration none{-1, "none", "", ""};
  connection_.transact([&](pqxx::work& transaction) {
    record_version(transaction, version);
    record_history(transaction, version ? migrations[static_cast<std::size_t>(*version)] : none, "force",
                   Milliseconds{0}, author_);
  });
}

}  // namespace mailroom::schema
