#pragma once

#include <string>

#include "config/settings.hpp"

namespace mailroom {

/// A value for people and logs: of a connection string the password is masked, of a key everything.
std::string shown(const SettingValue& value);

}  // namespace mailroom
