// What doctor says of the relays: whether each works, what is wrong, and what helps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"
#include "carriers/smtp/refusal/relay_fault.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "config/relay_path.hpp"

namespace mailroom::smtp {

/// Connects to each relay, logs in and names the sender, but no recipient.
std::vector<carriers::SinkFinding> check_smtp(const config::RelayPath& path,
                                              const mail::ConfiguredMail& mail);

/// The mail server that `greeting` names, if it answers 250 before a mail is on its disk; else empty.
std::string_view early_acknowledger(std::string_view greeting);

/// What is wrong, as a predicate of the relay: `cannot be reached`.
std::string problem_of(const RelayCheck& check);

/// What helps.
std::string hint_of(const RelayCheck& check, const RelayUrl& relay, const config::RelayPath& path);

}  // namespace mailroom::smtp
