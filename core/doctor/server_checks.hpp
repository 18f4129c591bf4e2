#pragma once

#include <chrono>
#include <string>

#include "doctor/finding.hpp"

namespace mailroom {

/// What a server says of itself before anything else matters.
struct ServerFacts {
  int version = 0;  ///< 150004 for 15.4
  std::string version_text;
  bool in_recovery = false;
  std::string encoding;
  std::string target;  ///< where the connection string leads
};

Findings judge_server(const ServerFacts& facts);

/// `ahead` is the server's clock less ours, give or take half of `round_trip`.
Finding judge_clock(std::chrono::milliseconds ahead, std::chrono::milliseconds round_trip);

}  // namespace mailroom
