#pragma once

#include <string>

namespace mailroom {

std::string host_name();

/// Who runs this process, for the record: `alice@host`; behind sudo the user who called it.
std::string operator_name();

}  // namespace mailroom
