#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "config/settings.hpp"
#include "db/connection.hpp"
#include "db/pooler.hpp"
#include "doctor/finding.hpp"

namespace mailroom {

/// Where the doctor gets what it examines, so that a test hands it something else.
struct DoctorSources {
  /// Throws Error(configuration).
  std::function<Settings(FileUse)> load;
  std::function<std::chrono::system_clock::time_point()> now;
};

/// What is examined, as far as the checks have come: each may rely on what those before it have found out.
struct Subject {
  DoctorSources sources;
  std::optional<Settings> settings;        ///< without the file when that could not be read
  bool settings_complete = false;          ///< the file, if there is one, was read
  bool url_valid = true;                   ///< the connection string can be parsed
  std::string fingerprint;                 ///< of the current key; empty until it is loaded
  std::unique_ptr<Connection> connection;  ///< none: not reached, or lost
  bool server_usable = true;               ///< of a version that can be asked
  bool in_recovery = false;
  PoolerKind pooler = PoolerKind::none;
  bool schema_usable = false;  ///< at least the newest version that this binary knows, as far as can be read
  bool schema_newer = false;
  bool has_tables = false;  ///< of a schema of whatever version
};

/// True if it is certain what `key` says: the file was read, or a flag or the environment wins over it.
bool knows(const Subject& subject, std::string_view key);

/// One check. It may throw Error, which then is its finding.
using Check = Findings (*)(Subject& subject);

Findings check_configuration(Subject& subject);
Findings check_key(Subject& subject);
Findings check_previous_keys(Subject& subject);
Findings check_database(Subject& subject);
Findings check_pooler(Subject& subject);
Findings check_clock(Subject& subject);
Findings check_server_settings(Subject& subject);
Findings check_schema(Subject& subject);
Findings check_drift(Subject& subject);
Findings check_privileges(Subject& subject);
Findings check_triggers(Subject& subject);
Findings check_channel(Subject& subject);
Findings check_sequence(Subject& subject);
Findings check_queue(Subject& subject);
Findings check_collectors(Subject& subject);
Findings check_batches(Subject& subject);

}  // namespace mailroom
