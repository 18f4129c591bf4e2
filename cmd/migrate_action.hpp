#pragma once

#include "cmd/command.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {

/// The options of migrate itself, which its commands take before and after their names.
struct MigrateOptions {
  std::string to;
  std::optional<Milliseconds> lock_timeout;
  std::optional<Milliseconds> wait;
  std::string reason;
  bool dry_run = false;
  bool show_sql = false;
};

using MigrateRun = std::function<ExitCode(const MigrateOptions&, Context&)>;

/// A command of migrate: `add` describes its own arguments, and returns what runs with them.
struct MigrateAction {
  const char* name;
  const char* summary;
  const char*
      takes;  ///< which options of migrate it takes: `--reason --wait`; one that it does not is refused
  MigrateRun (*add)(CommandSyntax& syntax);
};

// cmd/migrate.cpp lists them, in the order of the help.
extern const MigrateAction migrate_up_action;
extern const MigrateAction migrate_down_action;
extern const MigrateAction migrate_goto_action;
extern const MigrateAction migrate_status_action;
extern const MigrateAction migrate_verify_action;
extern const MigrateAction migrate_baseline_action;
extern const MigrateAction migrate_force_action;
extern const MigrateAction migrate_export_action;
extern const MigrateAction migrate_new_action;

/// A session to look at or change the schema with; tries for as long as --wait says to get one.
std::unique_ptr<Connection> connect_to_migrate(const MigrateOptions& options, Context& context);
/// The same, to change it: the migrations' lock needs a session of its own.
std::unique_ptr<Connection> connect_to_change_schema(const MigrateOptions& options, Context& context);

/// Who changes the schema, for the record.
SchemaAuthor schema_author(const MigrateOptions& options);

/// How long --wait says; nothing at all without it.
Milliseconds wait_of(const MigrateOptions& options);

/// Reads the number of a version. Throws Error(usage).
long read_version(const std::string& text);

/// `version 7`, or `no version`.
std::string version_text(const std::optional<long>& version);

/// `in 12 ms`, `in 1m30s`
std::string took_text(Milliseconds took);

}  // namespace mailroom
