// How findings and tables name a session, its age and what it does.
#pragma once

#include <string>

#include "status/queue_status.hpp"

namespace mailroom {

/// Formats an age for people, in its two largest units: `2d4h`, `4m12s`, `850ms`.
std::string age_text(Milliseconds age);

/// Identifies a session: `pid 4567 (psql, user alice)`.
std::string session_text(const ServerSession& session);
/// What a session does, as far as it is visible.
std::string activity_text(const ServerSession& session);

}  // namespace mailroom
