// What doctor says of the relays: whether each works, what is wrong, and what helps.
#pragma once

#include <string>
#include <vector>

#include "carriers/carriers.hpp"
#include "carriers/smtp/refusal/relay_fault.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "config/relay_path.hpp"

namespace mailroom {

/// Connects to each relay, logs in and names the sender, but no recipient.
std::vector<SinkFinding> check_smtp(const RelayPath& path, const ConfiguredMail& mail);

/// What is wrong, as a predicate of the relay: `cannot be reached`.
std::string problem_of(const RelayCheck& check);

/// What helps.
std::string hint_of(const RelayCheck& check, const RelayUrl& relay, const RelayPath& path);

}  // namespace mailroom
