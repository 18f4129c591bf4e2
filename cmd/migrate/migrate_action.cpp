// Waits for the database, and refuses a pooler, behind which the migration lock would not hold.

#include "cmd/migrate/migrate_action.hpp"

#include <fmt/format.h>
#include <thread>

#include "base/actor.hpp"
#include "base/clock.hpp"
#include "db/values.hpp"

namespace mailroom::cmd {

std::unique_ptr<db::Connection> connect_to_migrate(const MigrateOptions& options, Context& context) {
  constexpr Milliseconds interval{250};
  const auto end = steady_now() + *options.wait;
  for (bool told = false;;) {
    try {
      return context.connect("migrate");
    } catch (const db::ConnectionLost& error) {
      if (steady_now() + interval > end) throw;
      if (!told) context.log().info(std::string("waiting for the database: ") + error.what());
      told = true;
    }
    std::this_thread::sleep_for(interval);
  }
}

namespace {

schema::SchemaAuthor schema_author(db::Connection& connection, const std::string& reason) {
  db::require_storable(connection, "--reason", reason);
  return {.actor = db::storable(connection.facts(), operator_name()),
          .reason = reason,
          .program_version = MAILROOM_VERSION};
}

}  // namespace

MigrationSession::MigrationSession(const MigrateOptions& options, Context& context)
    : connection(connect_to_migrate(options, context)),
      migrator(*connection, schema_author(*connection, options.reason),
               {.dry_run = options.dry_run,
                .lock_timeout = *options.lock_timeout,
                .wait = *options.wait,
                .tell = [&context](const std::string& text) { context.log().warn(text); }}) {
  context.require_own_session(*connection, "migrate");
}

long read_version(const std::string& text) {
  long version = -1;
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, version);
  if (failure != std::errc() || rest != end || version < 0) {
    throw Error(ExitCode::usage, fmt::format("'{}' is not a schema version", text),
                "versions are whole numbers from 0: mailroom migrate status lists them");
  }
  schema::require_known_version(schema::embedded_migrations(), version);
  return version;
}

std::string version_text(const std::optional<long>& version) {
  return version ? fmt::format("version {}", *version) : "no version";
}

}  // namespace mailroom::cmd
