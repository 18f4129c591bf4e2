// What to do about a relay that takes no mail.
#pragma once

#include <string>

#include "carriers/smtp/relay.hpp"
#include "config/settings.hpp"

namespace mailroom {

/// What is wrong, as a predicate of the relay: `cannot be reached`.
std::string problem_of(const RelayCheck& check);

/// What helps.
std::string hint_of(const RelayCheck& check, const RelayUrl& relay, const Settings& settings);

}  // namespace mailroom
