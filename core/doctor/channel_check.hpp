#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// The channels that a function's source notifies, as LISTEN knows them: each `NOTIFY name`, `NOTIFY "Name"`
/// and `pg_notify('name', …)` outside comments. One that is worked out when the function runs is not seen.
std::vector<std::string> notified_channels(std::string_view source);

}  // namespace mailroom
