// Who runs a command, and on which host, for the records of operations and the names of sessions.
#pragma once

#include <string>

namespace mailroom {

std::string host_name();

/// The user that runs this process, for records: `alice@host`. Under sudo, the user who called sudo.
std::string operator_name();

}  // namespace mailroom
