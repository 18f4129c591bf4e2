#pragma once

#include "cmd/command.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {

/// Options of migrate itself, given before or after the name of one of its commands.
struct MigrateOptions {
  std::string to;
  std::optional<Milliseconds> lock_timeout;
  std::optional<Milliseconds> wait;
  std::string reason;
  bool dry_run = false;
  bool show_sql = false;
};

using MigrateRun = std::function<ExitCode(const MigrateOptions&, Context&)>;

/// A command of migrate. `add` describes its own arguments and returns the function that runs with them.
struct MigrateAction {
  const char* name;
  const char* summary;
  const char* takes;  ///< the options of migrate that it takes: `--reason --wait`; others are refused
  MigrateRun (*add)(CommandSyntax& syntax);
};

// migrate.cpp lists them in help order.
extern const MigrateAction migrate_up_action;
extern const MigrateAction migrate_down_action;
extern const MigrateAction migrate_goto_action;
extern const MigrateAction migrate_status_action;
extern const MigrateAction migrate_verify_action;
extern const MigrateAction migrate_baseline_action;
extern const MigrateAction migrate_force_action;
extern const MigrateAction migrate_export_action;
extern const MigrateAction migrate_new_action;

/// Connects, retrying for up to --wait. Throws ConnectionLost after that.
std::unique_ptr<Connection> connect_to_migrate(const MigrateOptions& options, Context& context);
/// The same, for a command that changes the schema. Throws Error(configuration) behind a pooler that shares
/// sessions: the migration lock needs a session of its own.
std::unique_ptr<Connection> connect_to_change_schema(const MigrateOptions& options, Context& context);

/// The actor, reason and program version to record with a schema change.
SchemaAuthor schema_author(const MigrateOptions& options);

/// The value of --wait; 0 without it.
Milliseconds wait_of(const MigrateOptions& options);

/// Parses a version number. Throws Error(usage) unless it is a whole number from 0.
long read_version(const std::string& text);

/// `version 7`, or `no version`.
std::string version_text(const std::optional<long>& version);

/// `in 12 ms`, `in 1m30s`
std::string took_text(Milliseconds took);

}  // namespace mailroom
