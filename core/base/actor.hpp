// Who runs a command, and on which host, for the records of operations and the names of sessions.
#pragma once

#include <string>

namespace mailroom {

std::string host_name();

/// The user that runs this process. Under sudo, the user who called sudo.
std::string user_name();

/// Both, for records: `alice@host`.
std::string operator_name();

}  // namespace mailroom
