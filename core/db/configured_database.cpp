// Reads the password file before any session does, so that a wrong one is an error of the configuration.

#include "db/configured_database.hpp"

#include "base/password_file.hpp"
#include "db/conninfo.hpp"

namespace mailroom {

DatabaseTarget configured_database(const Settings& settings) {
  DatabaseTarget target(settings.database.url, settings.database.schema);
  if (has_password(target.conninfo) || settings.database.password_file.empty()) return target;
  target.password_file = settings.database.password_file;
  target.allow_readable_file = settings.signing.allow_readable_key;
  // A file that is wrong from the start is an error of the configuration.
  read_password_file(target.password_file, target.allow_readable_file, "database.password_file");
  return target;
}

}  // namespace mailroom
