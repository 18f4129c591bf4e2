// Keys that a command needs and that have no default, such as the relay of mailroom send.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/settings.hpp"

namespace mailroom {

/// A key without a default, and an example of its value.
using RequiredKey = std::pair<std::string, std::string>;

inline const RequiredKey relay_key{"send.relay", "smtp://user@relay.example:587"};
inline const RequiredKey password_file_key{"send.password_file", "/etc/mailroom/relay-password"};
inline const RequiredKey from_key{"send.from", "Example <no-reply@app.example>"};
inline const RequiredKey link_key{"send.link", "https://app.example/{action}?token={token}"};

/// Throws Error(configuration) that names every key without a value, with an example of the first.
void require_keys(const std::vector<RequiredKey>& keys, const Settings& settings);

}  // namespace mailroom
