// The messages of a simulation: an application that asks for mails, and the removal of these.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "simulation/emission_watch.hpp"
#include "simulation/lasting_connection.hpp"

namespace mailroom {

/// Which messages to send. Message n of a seed has the reference and the key `sim-SEED-mN`, and that name at
/// the domain of simulated accounts as its recipient.
struct MessageRun {
  std::int64_t messages = 0;
  std::uint64_t seed = 0;
  std::optional<double> rate;  ///< messages per second, one per transaction; nullopt: 1,000 per transaction
};

struct MessageTally {
  std::int64_t messages = 0;
  double seconds = 0;
  LatencyHistogram latency;  ///< of every transaction
};

/// Inserts them, of 2 kB each. After each transaction, and while it waits for the rate, calls `go_on` with
/// the number so far, and ends when it returns false. A transaction whose end a lost connection hides is
/// repeated; the keys keep it from sending twice.
MessageTally send_messages(LastingConnection& connection, const MessageRun& run,
                           const std::function<bool(std::int64_t)>& go_on);

/// Removes messages whose reference begins with `prefix` and that go to simulated addresses, with their
/// tokens, as remove_simulated_accounts() does.
std::int64_t remove_simulated_messages(LastingConnection& connection, const std::string& prefix,
                                       const std::function<bool(std::int64_t)>& go_on);

}  // namespace mailroom
