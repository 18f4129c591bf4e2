#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/stage.hpp"

namespace mailroom::bench {

/// Under what conditions the figures came to be.
struct Machine {
  std::string processor;
  unsigned cores = 0;
  std::int64_t memory_mib = 0;
  std::string kernel;
  std::string server;       ///< PostgreSQL's version
  double fsync_ms = 0;      ///< median of an 8 KiB write and fdatasync where the server's data lie
  std::string load_before;  ///< the load averages of 1, 5 and 15 minutes
  std::string load_after{};
  std::string started;  ///< UTC
};

/// Looks at everything but load_after.
Machine look_at_machine(Stage& stage);
std::string load_averages();

std::string describe(const Machine& machine);
nlohmann::ordered_json to_json(const Machine& machine);

}  // namespace mailroom::bench
