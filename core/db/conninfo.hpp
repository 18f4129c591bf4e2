#pragma once

#include <string>
#include <vector>

namespace mailroom {

/// One keyword of a connection string, as libpq names it.
struct ConninfoOption {
  std::string keyword;
  std::string value;
};

/// The options that `conninfo` (a libpq URI or keyword=value list, possibly empty) sets. Throws Error with
/// ExitCode::configuration for one that libpq cannot read, and for a URI whose password holds an @ that
/// should be %40; the message never quotes it, since libpq's own may quote the password.
std::vector<ConninfoOption> parse_conninfo(const std::string& conninfo);

/// `conninfo` as keyword=value list with each of `defaults` added that it does not set.
std::string with_defaults(const std::string& conninfo, const std::vector<ConninfoOption>& defaults);

/// For people and logs: passwords read `***`.
std::string redact_conninfo(const std::string& conninfo);

/// Where `conninfo` leads, with libpq's environment and defaults: host, port, dbname and user.
std::string describe_target(const std::string& conninfo);

bool has_password(const std::string& conninfo);

}  // namespace mailroom
