// Connection strings: what is in them, what mailroom adds, what may be shown, and all that opens one more
// session.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/settings.hpp"

namespace mailroom::db {

/// Where a session connects, and in which schema it works.
struct DatabaseTarget {
  DatabaseTarget() = default;
  // Not explicit: a connection string alone is a target.
  DatabaseTarget(std::string conninfo_, std::string schema_ = {})
      : conninfo(std::move(conninfo_)), schema(std::move(schema_)) {}
  DatabaseTarget(const char* conninfo_) : conninfo(conninfo_) {}

  std::string conninfo;         ///< a URI or a keyword=value list of libpq
  std::string schema;           ///< empty: the first schema of the role's search_path
  std::string password_file{};  ///< read for each session, unless `conninfo` has a password; may be empty
  bool allow_readable_file = false;

  bool operator==(const DatabaseTarget&) const = default;
};

/// One keyword of a connection string, as libpq names it.
struct ConninfoOption {
  std::string keyword;
  std::string value;
};

/// The options that `conninfo` (a libpq URI or keyword=value list, possibly empty) sets. Throws
/// Error(configuration) if libpq cannot parse it, if a URI's password has an @ that should be %40, or if
/// another option contains a password. The message says why, without quoting a part that may be a password.
std::vector<ConninfoOption> parse_conninfo(const std::string& conninfo);

/// `conninfo` as a keyword=value list, plus those of `defaults` that it does not set.
std::string with_defaults(const std::string& conninfo, const std::vector<ConninfoOption>& defaults);

/// As with_defaults(), but libpq's environment variables (PGCONNECT_TIMEOUT, …) and the service file win over
/// `fallbacks`.
std::string with_fallbacks(const std::string& conninfo, const std::vector<ConninfoOption>& fallbacks);

/// `conninfo` as a keyword=value list in which `option` replaces its own.
std::string with_option(const std::string& conninfo, const ConninfoOption& option);

/// How many seconds libpq waits for a connection to an address: connect_timeout as given, by the environment
/// or by the service file; 0: for ever.
int connect_timeout_of(const std::string& conninfo);

/// `conninfo` for people and logs: passwords are shown as `***`.
std::string redact_conninfo(const std::string& conninfo);

/// The target of `conninfo` with libpq's environment and defaults: service, host, hostaddr, port, dbname,
/// user.
std::string describe_target(const std::string& conninfo);

/// The `options` that a session of `conninfo` asks the server for: its own, or those of PGOPTIONS; may be
/// empty.
std::string session_options(const std::string& conninfo);

bool has_password(const std::string& conninfo);

/// Where a session connects: database.url, with the password of database.password_file unless it has one, and
/// database.schema. Each session reads the password file again. Throws Error(configuration) if the connection
/// string cannot be parsed, or as read_password_file() does.
DatabaseTarget configured_database(const config::Settings& settings);
}  // namespace mailroom::db
