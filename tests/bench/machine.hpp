#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/stage.hpp"

namespace mailroom::bench {

/// The conditions of the measurement.
struct Machine {
  std::string processor;
  unsigned cores = 0;
  std::int64_t memory_mib = 0;
  std::string kernel;
  std::string server;       ///< PostgreSQL's version
  double fsync_ms = 0;      ///< median of an 8 KiB write and fdatasync in the server's data directory
  double flush_ms = 0;      ///< by which each flush of the WAL was made longer
  std::string load_before;  ///< the load averages of 1, 5 and 15 minutes
  std::string load_after{};
  std::string started;  ///< UTC
};

/// Fills everything but load_after.
Machine describe_machine(Stage& stage);
std::string load_averages();

std::string describe(const Machine& machine);
nlohmann::ordered_json to_json(const Machine& machine);

}  // namespace mailroom::bench
