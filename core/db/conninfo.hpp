#pragma once

#include <string>
#include <vector>

namespace mailroom {

/// One keyword of a connection string, as libpq names it.
struct ConninfoOption {
  std::string keyword;
  std::string value;
};

/// The options that `conninfo` (a libpq URI or keyword=value list, possibly empty) sets. Throws
/// Error(configuration) if libpq cannot parse it, if a URI's password has an @ that should be %40, or if
/// another option contains a password. The message does not quote libpq's, which may contain the password.
std::vector<ConninfoOption> parse_conninfo(const std::string& conninfo);

/// `conninfo` as a keyword=value list, plus those of `defaults` that it does not set.
std::string with_defaults(const std::string& conninfo, const std::vector<ConninfoOption>& defaults);

/// `conninfo` for people and logs: passwords are shown as `***`.
std::string redact_conninfo(const std::string& conninfo);

/// The target of `conninfo` with libpq's environment and defaults: service, host, hostaddr, port, dbname,
/// user.
std::string describe_target(const std::string& conninfo);

/// The `options` that a session of `conninfo` asks the server for: its own, or those of PGOPTIONS; may be
/// empty.
std::string session_options(const std::string& conninfo);

bool has_password(const std::string& conninfo);

}  // namespace mailroom
