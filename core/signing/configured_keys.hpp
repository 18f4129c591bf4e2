#pragma once

#include <string>

#include "config/settings.hpp"
#include "crypto/key_ring.hpp"

namespace mailroom {

/// The key that `settings` name. Throws Error(configuration) when there is none, or it is not valid.
Key load_current_key(const Settings& settings);

/// One of `settings.previous_keys`. Throws Error(configuration) when it is not valid.
Key load_previous_key(const Settings& settings, const std::string& item);

/// The setting of the previous keys, where it stands and what separates several: for a hint.
std::string describe_previous_keys(const Settings& settings);

/// All keys that `settings` name. Throws Error(configuration) as the two above.
KeyRing load_key_ring(const Settings& settings);

}  // namespace mailroom
