// What Amazon SES says of a mail after it took it, as a notification of an identity or of a configuration
// set.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "bounce/bounce.hpp"

namespace mailroom {

/// True if `object` has a notificationType or an eventType, and the mail that it is about.
bool is_ses_event(const nlohmann::json& object);

/// Reads bounces, complaints, deliveries, delays and rejections; nullopt for other events.
std::optional<Bounce> read_ses_event(const nlohmann::json& event);

}  // namespace mailroom
