// What the threads that speak with the database tell the one that speaks with clients.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "submission/reply.hpp"

namespace mailroom::submission {

struct Verdict {
  std::uint64_t session = 0;
  std::string role{};       ///< whose mail it is about; empty for a login
  Reply reply{};            ///< a refusal; code 0: none
  std::string message{};    ///< the id of the message that is stored
  std::string logged_in{};  ///< the role whose password was right
  Milliseconds after{};     ///< to be told so late: who guesses waits, and holds up nobody else
};

/// Called by any thread.
using Tell = std::function<void(Verdict)>;

}  // namespace mailroom::submission
