// What Resend says of a mail after it took it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "bounce/bounce.hpp"

namespace mailroom {

/// True if `object` has a type as `email.bounced`, and data.
bool is_resend_event(const nlohmann::json& object);

/// Reads bounces, complaints, deliveries, delays, failures and suppressions; nullopt for other events.
std::optional<Bounce> read_resend_event(const nlohmann::json& event);

}  // namespace mailroom
