// What audit says of the answers that a relay, server or program gave for one token.
#pragma once

#include <string>

#include "audit/token_delivery.hpp"

namespace mailroom {

/// What became of a delivery, as a part of a sentence: `accepted once, 2026-11-22T20:59:55Z by
/// relay.example:25: 250 2.0.0 Ok: queued as 4Z1`.
std::string token_delivery_text(const TokenDelivery& status, Moment now);

}  // namespace mailroom
