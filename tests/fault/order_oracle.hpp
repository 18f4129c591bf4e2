#pragma once

#include <string>
#include <vector>

#include "fault/order_player.hpp"

namespace mailroom::test {

/// Returns what the queue has not kept of its promises in an order whose rest was taken; empty if all is
/// well.
std::vector<std::string> judge_order(const Scenario& scenario, const History& history,
                                     db::Connection& connection);

/// Returns the errors of statements, which no step of a scenario has.
std::vector<std::string> order_errors(const History& history);

}  // namespace mailroom::test
