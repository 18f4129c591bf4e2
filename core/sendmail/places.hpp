// Where sendmail leaves its mails: the socket of the service, and the spool.
#pragma once

#include <optional>
#include <string>

#include "config/settings.hpp"
#include "submission/door.hpp"

namespace mailroom::sendmail {

/// The first unix socket of submission.listen where nobody logs in; nullopt if there is none.
std::optional<submission::Door> local_door(const config::Settings& settings);

/// As local_door(). Throws Error(configuration) if there is none.
submission::Door needed_local_door(const config::Settings& settings);

/// submission.spool. If that is not set, the spool of Debian's package, if it is there; empty otherwise.
std::string spool_directory(const config::Settings& settings);

}  // namespace mailroom::sendmail
