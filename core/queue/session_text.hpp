#pragma once

#include <string>

#include "queue/queue_status.hpp"

namespace mailroom {

/// The age of something for people: the two largest units, `2d4h`, `4m12s`, `850ms`.
std::string age_text(Milliseconds age);

/// Who a session is: `pid 4567 (psql, user alice)`; with what it does, as far as it can be seen.
std::string session_text(const ServerSession& session);
std::string activity_text(const ServerSession& session);

}  // namespace mailroom
