#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fault/cluster.hpp"
#include "fault/oracle.hpp"
#include "fault/sabotage.hpp"

namespace mailroom::test {

/// When inserts notify: while collectors listen, or always.
enum class Notifying { when_listening, always };

/// How to run a fault.
struct Plan {
  int rounds = 1;
  Notifying notifying = Notifying::when_listening;
  std::uint64_t seed = 1;
  bool shortened = false;
  const Sabotage* sabotage = nullptr;  ///< breaks the protocol on purpose
};

/// The result of a fault. `problems` holds every expectation that was not met.
struct Outcome {
  int rounds = 0;
  Tally tally;
  std::size_t unexplained = 0;                ///< tokens that the records of the database do not account for
  std::optional<Milliseconds> longest_gap{};  ///< between two emissions while the writers wrote
  std::vector<std::string> notes{};           ///< other measurements
  std::vector<std::string> problems{};
};

/// Thrown by a fault that cannot run on this machine: it counts as not run, never as passed.
class CannotBePlayed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Fault {
  std::string name;
  std::string expectation;  ///< one line, for --list
  int rounds = 1;           ///< of a full run
  int short_rounds = 1;     ///< with --short; 0: not run, because it takes long or another fault covers it
  std::function<Outcome(Cluster&, const Plan&)> run;
  bool short_always = false;  ///< with --short, also run it with Notifying::always
};

/// The faults of each file, in the order in which they run.
std::vector<Fault> process_faults();
std::vector<Fault> step_faults();
std::vector<Fault> session_faults();
std::vector<Fault> server_faults();
std::vector<Fault> replica_faults();
std::vector<Fault> network_faults();
std::vector<Fault> output_faults();
std::vector<Fault> backlog_faults();
std::vector<Fault> transaction_faults();
std::vector<Fault> waking_faults();
std::vector<Fault> data_faults();
std::vector<Fault> clock_faults();
std::vector<Fault> queue_faults();
std::vector<Fault> rate_faults();
std::vector<Fault> send_faults();
std::vector<Fault> message_faults();
std::vector<Fault> relay_faults();
std::vector<Fault> relay_login_faults();
std::vector<Fault> handover_faults();
std::vector<Fault> bounce_faults();
std::vector<Fault> topic_faults();

}  // namespace mailroom::test
