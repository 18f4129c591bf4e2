// What the commands of migrate share: options, session and version numbers.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/context.hpp"
#include "schema/migrator.hpp"
#include "schema/verification.hpp"

namespace mailroom::cmd {

/// The differences as text, without headline and advice.
std::string render_differences(const schema::Verification& verification, Context& context);

/// The whole report as text.
std::string render_verification(const schema::Verification& verification, Context& context);

/// The whole report as one JSON object.
nlohmann::ordered_json verification_object(const schema::Verification& verification);

/// The options of migrate, given before or after the name of one of its commands, and the arguments of these.
struct MigrateOptions {
  std::string version;  ///< V, or that of --to; may be `none` for force
  std::optional<Milliseconds> lock_timeout = schema::MigratorOptions().lock_timeout;
  std::optional<Milliseconds> wait = Milliseconds{0};
  std::string reason;
  bool dry_run = false;
  bool show_sql = false;
  int count = 1;  ///< N of down
  bool all = false;
  long baseline = 0;
  std::string directory;
};

// The commands of migrate; migrate.cpp describes them.
ExitCode migrate_up(const MigrateOptions& options, Context& context);
ExitCode migrate_down(const MigrateOptions& options, Context& context);
ExitCode migrate_goto(const MigrateOptions& options, Context& context);
ExitCode migrate_status(const MigrateOptions& options, Context& context);
ExitCode migrate_verify(const MigrateOptions& options, Context& context);
ExitCode migrate_baseline(const MigrateOptions& options, Context& context);
ExitCode migrate_force(const MigrateOptions& options, Context& context);
ExitCode migrate_export(const MigrateOptions& options, Context& context);

/// Connects, retrying for up to --wait. Throws ConnectionLost after that.
std::unique_ptr<db::Connection> connect_to_migrate(const MigrateOptions& options, Context& context);

/// A session for a command that changes the schema. Throws Error(configuration) behind a pooler that shares
/// sessions: the migration lock needs a session of its own.
struct MigrationSession {
  MigrationSession(const MigrateOptions& options, Context& context);

  std::unique_ptr<db::Connection> connection;
  schema::Migrator migrator;
};

/// Parses the number of a version that this binary knows. Throws Error(usage).
long read_version(const std::string& text);

/// `version 7`, or `no version`.
std::string version_text(const std::optional<long>& version);

}  // namespace mailroom::cmd
