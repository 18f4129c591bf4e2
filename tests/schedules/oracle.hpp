#pragma once

#include <string>

#include "schedules/world.hpp"

namespace mailroom::test {

/// Returns the first fault of a world in which every collector has ended; empty if there is none.
///
/// Every committed token that stays due was emitted, no other token was, and none later than its bound. Lines
/// are complete and within the limit. No batch is open and no token waits. A batch is repeated only if the
/// process that wrote it died (at most one batch per death), or if its session ended and another collector
/// took it over, one that did not have to wait after its own reconnect (at most one batch per session).
std::string judge(const World& world);

}  // namespace mailroom::test
