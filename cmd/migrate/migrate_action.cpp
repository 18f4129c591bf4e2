#include "cmd/migrate/migrate_action.hpp"

#include <thread>

#include "base/actor.hpp"
#include "base/duration.hpp"

namespace mailroom {

std::unique_ptr<Connection> connect_to_migrate(const MigrateOptions& options, Context& context) {
  constexpr Milliseconds interval{250};
  const auto end = std::chrono::steady_clock::now() + wait_of(options);
  for (bool told = false;;) {
    try {
      return context.connect("migrate");
    } catch (const ConnectionLost& error) {
      if (std::chrono::steady_clock::now() + interval > end) throw;
      if (!told) context.log().info(std::string("waiting for the database: ") + error.what());
      told = true;
    }
    std::this_thread::sleep_for(interval);
  }
}

std::unique_ptr<Connection> connect_to_change_schema(const MigrateOptions& options, Context& context) {
  auto connection = connect_to_migrate(options, context);
  context.require_own_session(*connection, "migrate");
  return connection;
}

SchemaAuthor schema_author(const MigrateOptions& options) {
  return {.actor = operator_name(), .reason = options.reason, .program_version = MAILROOM_VERSION};
}

Milliseconds wait_of(const MigrateOptions& options) {
  return options.wait.value_or(Milliseconds{0});
}

long read_version(const std::string& text) {
  long version = -1;
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, version);
  if (failure == std::errc() && rest == end && version >= 0) return version;
  throw Error(ExitCode::usage, fmt::format("'{}' is not a schema version", text),
              "versions are whole numbers from 0: mailroom migrate status lists them");
}

std::string version_text(const std::optional<long>& version) {
  return version ? fmt::format("version {}", *version) : "no version";
}

std::string took_text(Milliseconds took) {
  constexpr Milliseconds precise{10'000};
  if (took < precise) return fmt::format("in {} ms", took.count());
  return "in " + format_duration(std::chrono::duration_cast<std::chrono::seconds>(took));
}

}  // namespace mailroom
