#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// The channels that a function's source notifies, as named for LISTEN: each `NOTIFY name`, `NOTIFY "Name"`
/// and `pg_notify('name', …)` outside comments. Does not find channels that are computed at run time.
std::vector<std::string> notified_channels(std::string_view source);

}  // namespace mailroom
