// The keys that sign and verify tokens, as the settings name them.
#pragma once

#include <string>

#include "config/settings.hpp"
#include "crypto/key_ring.hpp"

namespace mailroom::signing {

/// Loads the current key. Throws Error(configuration) if none is configured or it is invalid.
crypto::Key load_current_key(const config::Settings& settings);

/// Loads `item`, one of `settings.signing.previous_keys`. Throws Error(configuration) if it is invalid.
crypto::Key load_previous_key(const config::Settings& settings, const std::string& item);

/// The name, origin and list syntax of the setting for previous keys, for a hint.
std::string describe_previous_keys(const config::Settings& settings);

/// Loads all configured keys. Throws Error(configuration) as the functions above.
crypto::KeyRing load_key_ring(const config::Settings& settings);

}  // namespace mailroom::signing
