#include "cmd/migrate_action.hpp"

#include "base/who.hpp"

namespace mailroom {

std::unique_ptr<Connection> connect_to_migrate(const MigrateOptions& /*options*/, Context& context) {
  return context.connect("migrate");
}

SchemaAuthor schema_author(const MigrateOptions& options) {
  return {.actor = operator_name(), .reason = options.reason, .program_version = MAILROOM_VERSION};
}

std::string version_text(const std::optional<long>& version) {
  return version ? std::to_string(*version) : "none";
}

}  // namespace mailroom
