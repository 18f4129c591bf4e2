// A schema that does not fit becomes a part of the reading, not an error.

#include "metrics/database_reading.hpp"

#include "base/clock.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/migration.hpp"

namespace mailroom {

namespace {

std::optional<Error> why_schema_does_not_fit(Connection& connection) {
  try {
    require_current_schema(connection);
  } catch (const Error& error) {
    if (error.code() != ExitCode::schema) throw;
    return error;
  }
  return std::nullopt;
}

}  // namespace

DatabaseReading read_database(Connection& connection,
                              const std::function<std::vector<std::string>(Connection&)>& queues,
                              const HealthLimits& limits) {
  const auto began = steady_now();
  const auto schema = read_schema_state(connection);
  DatabaseReading reading{.schema_version = schema.version.value_or(0),
                          .schema_is_dirty = schema.dirty,
                          .newest_schema_version = embedded_migrations().back().version,
                          .schema_error = why_schema_does_not_fit(connection)};
  const auto names = reading.schema_error ? std::vector<std::string>() : queues(connection);
  for (const auto& queue : names) {
    try {
      auto status = read_queue_status(connection, queue);
      auto findings = judge_queue(status, limits);
      reading.queues.push_back({std::move(status), std::move(findings)});
    } catch (const DatabaseError& error) {
      if (error.sqlstate() != sqlstate::unknown_queue) throw;
    }
  }
  reading.took = steady_now() - began;
  return reading;
}

}  // namespace mailroom
