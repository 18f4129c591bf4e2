#pragma once

#include <vector>

#include "cmd/command.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {

/// The options of migrate itself, which its commands take before and after their names.
struct MigrateOptions {
  std::string reason;
};

using MigrateRun = std::function<ExitCode(const MigrateOptions&, Context&)>;

/// A command of migrate: `add` describes its own arguments, and returns what runs with them.
struct MigrateAction {
  const char* name;
  const char* summary;
  const char*
      takes;  ///< which options of migrate it takes: `--reason --wait`; one that it does not is refused
  MigrateRun (*add)(CLI::App& app);
};

// cmd/migrate.cpp lists them, in the order of the help.
extern const MigrateAction migrate_up_action;
extern const MigrateAction migrate_down_action;
extern const MigrateAction migrate_status_action;
extern const MigrateAction migrate_verify_action;
extern const MigrateAction migrate_baseline_action;

/// A session to look at or change the schema with.
std::unique_ptr<Connection> connect_to_migrate(const MigrateOptions& options, Context& context);

/// Who changes the schema, for the record.
SchemaAuthor schema_author(const MigrateOptions& options);

/// `7`, or `none`.
std::string version_text(const std::optional<long>& version);

}  // namespace mailroom
