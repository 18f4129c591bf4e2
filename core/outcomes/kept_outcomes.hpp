// The outcomes that wait until an application is told of them: rows of mailroom_outcomes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// One that is to be handed over.
struct KeptOutcome {
  std::int64_t id = 0;
  std::int64_t token = 0;
  std::string queue;
  std::string state;
  int attempts = 0;  ///< how often it was refused
  std::string line;  ///< as JSON, without a newline
};

/// The session of the one process that hands outcomes over. Owns every transaction.
class KeptOutcomes {
 public:
  /// Keeps outcomes from now on.
  explicit KeptOutcomes(Connection& connection);

  /// Becomes the one that hands them over; false while another session is.
  bool take_over();
  /// The oldest that are due.
  std::vector<KeptOutcome> due(int limit);
  /// The application has taken these, or will never take them.
  void remove(const std::vector<std::int64_t>& ids);
  /// It will be told later. `counts`: it has refused it, rather than that it could not be reached.
  void put_off(std::int64_t id, Milliseconds wait, bool counts);

  /// Ends the keeping, and removes what is kept. Returns how many these were.
  static std::int64_t end(Connection& connection);

 private:
  Connection& connection_;
};

}  // namespace mailroom
