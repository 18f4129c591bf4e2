#pragma once

#include <chrono>
#include <string>

#include "doctor/finding.hpp"

namespace mailroom {

/// Basic facts about the server.
struct ServerFacts {
  int version = 0;  ///< 150004 for 15.4
  std::string version_text;
  bool in_recovery = false;
  std::string encoding;
  std::string target;  ///< of the connection string: see describe_target()
};

Findings judge_server(const ServerFacts& facts);

/// `ahead` is the server's clock minus this host's, with an error of up to half of `round_trip`.
Finding judge_clock(std::chrono::milliseconds ahead, std::chrono::milliseconds round_trip);

}  // namespace mailroom
