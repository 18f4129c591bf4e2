// Keeps secrets out of what config show and the log say of settings.
#pragma once

#include <string>

#include "config/settings.hpp"

namespace mailroom::cmd {

/// The value for display and logs: the password of a connection string and all of a key are masked.
std::string shown(const config::SettingValue& value);

}  // namespace mailroom::cmd
