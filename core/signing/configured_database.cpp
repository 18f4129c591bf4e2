#include "signing/configured_database.hpp"

#include "base/password_file.hpp"
#include "db/conninfo.hpp"

namespace mailroom {

std::string configured_database(const Settings& settings) {
  if (settings.database_password_file.empty() || has_password(settings.database_url))
    return settings.database_url;
  const auto password = read_password_file(settings.database_password_file, settings.allow_readable_key,
                                           "database.password_file");
  return with_defaults(settings.database_url, {{"password", password}});
}

}  // namespace mailroom
