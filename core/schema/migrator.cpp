#include "schema/migrator.hpp"

#include <fmt/format.h>

#include "schema/bookkeeping.hpp"
#include "schema/recognition.hpp"

namespace mailroom {

void Migrator::run(const Planner& plan, const Progress& progress) {
  const auto state = recognised(connection_, begin());
  const auto steps = plan(state);
  if (state.unrecorded) {
    connection_.transact(
        [&](pqxx::work& transaction) { record_claim(transaction, *state.version, "adopt", author_); });
  }
  for (const auto& step : steps) {
    progress(step, apply(step));
  }
}

SchemaState Migrator::begin() {
  lock();
  return read_schema_state(connection_);
}

void Migrator::claim(long version) {
  connection_.transact(
      [&](pqxx::work& transaction) { record_claim(transaction, version, "baseline", author_); });
}

void Migrator::lock() {
  // Held by the session, so it ends with it. The key is of the database: advisory locks are.
  const auto taken = connection_.run("SELECT pg_try_advisory_lock(1835100526, 0)");
  if (taken[0][0].as<bool>()) return;
  throw Error(ExitCode::locked, "another mailroom migrate is at work on this database",
              "wait for it, or find it with: SELECT pid FROM pg_locks WHERE classid = 1835100526");
}

Milliseconds Migrator::apply(const MigrationStep& step) {
  const auto started = std::chrono::steady_clock::now();
  const auto taken = [&] {
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - started);
  };
  const bool up = step.direction == Direction::up;
  const auto& migration = *step.migration;
  try {
    connection_.transact([&](pqxx::work& transaction) {
      Connection::execute(transaction, up ? migration.up : migration.down);
      record_version(transaction, step.version_after());
      record_history(transaction, migration, up ? "up" : "down", taken(), author_);
    });
    return taken();
  } catch (const DatabaseError& error) {
    const auto hint = error.hint().empty() ? std::string() : error.hint() + "; ";
    throw Error(ExitCode::schema,
                fmt::format("migration {}_{}.{} failed: {}", migration.version, migration.name,
                            up ? "up" : "down", error.what()),
                hint + "nothing of it was kept, and the version is as before");
  }
}

}  // namespace mailroom
