#pragma once

#include "bench/stage.hpp"

namespace mailroom::bench {

/// Runs `sql` by pgbench, for three seconds before scaling; returns how often a second.
double statements_per_second(Stage& stage, const std::string& database, int clients, const std::string& sql);

}  // namespace mailroom::bench
