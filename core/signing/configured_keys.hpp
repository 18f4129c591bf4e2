// The keys that sign and verify tokens, as the settings name them.
#pragma once

#include <string>

#include "config/settings.hpp"
#include "crypto/key_ring.hpp"

namespace mailroom {

/// Loads the current key. Throws Error(configuration) if none is configured or it is invalid.
Key load_current_key(const Settings& settings);

/// Loads `item`, one of `settings.signing.previous_keys`. Throws Error(configuration) if it is invalid.
Key load_previous_key(const Settings& settings, const std::string& item);

/// The name, origin and list syntax of the setting for previous keys, for a hint.
std::string describe_previous_keys(const Settings& settings);

/// Loads all configured keys. Throws Error(configuration) as the functions above.
KeyRing load_key_ring(const Settings& settings);

}  // namespace mailroom
