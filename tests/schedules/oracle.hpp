#pragma once

#include <string>

#include "schedules/world.hpp"

namespace mailroom::test {

/// What is wrong with a world in which every collector has ended; empty if nothing.
///
/// Every committed token that stays due has gone out, no other has, none later than its bound; lines are
/// whole and within the limit; nothing is left open or waiting. A batch goes out again only if the process
/// that wrote it died, at most one for each death, or if its session ended and another collector, which did
/// not have to wait after a reconnect of its own, took it over, at most one for each session.
std::string judge(const World& world);

}  // namespace mailroom::test
