// The circuit breaker of a relay or another sink, as a value with pure functions, and the table in which
// consumers share it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "claim/queue_session.hpp"
#include "delivery/answer.hpp"

namespace mailroom::delivery {

/// Keeps mails from a relay that takes none, and lets one through now and then to see whether it does. A
/// value: processes may share it through a database.
struct Breaker {
  int failures = 0;       ///< in a row; 0: the breaker is closed, and mails pass
  WallTime since{};       ///< when it opened
  WallTime opened_at{};   ///< the last failure
  WallTime next_probe{};  ///< when the next mail may pass
  std::string why{};      ///< the last failure, printable: code and words of the relay, or why there are none
  std::string learnt{};   ///< JSON of what it refuses while it works; only where processes share it
  std::string seen{};     ///< the same as it was shared last, which `learnt` changes

  bool operator==(const Breaker&) const = default;
  bool is_open() const { return failures > 0; }
};

/// How long a breaker stays open after this many failures: 1 s, doubling to 30 s, reduced by up to a fifth by
/// `chance`, from 0 to 1.
Milliseconds breaker_delay(int failures, double chance);

/// How long to wait before a message that may have been taken is sent again, after so many tries: 0.25 s,
/// doubling to 5 s, reduced likewise.
Milliseconds resend_delay(int tries, double chance);

/// The breaker after a mail has been let through, or nullopt if none may pass. The mail that passes an open
/// breaker is its probe: for `probe_time` no other one passes, unless the probe ends.
std::optional<Breaker> let_through(const Breaker& breaker, WallTime now, Milliseconds probe_time);

/// The breaker after an attempt that began at `began`. An attempt that began before the breaker opened fails
/// for the same reason, and does not extend the delay.
Breaker after_answer(const Breaker& breaker, const Answer& answer, WallTime began, WallTime now,
                     double chance);

/// The time until the next mail may pass, at least 1 s; nullopt if the breaker is closed. While a probe is
/// under way, 1 s: it may end at any time.
std::optional<std::chrono::seconds> time_to_probe(const Breaker& breaker, WallTime now);

/// What the consumers of a database know together about the receivers of a sink, such as its relays.
class SharedBreakers {
 public:
  /// `probe_time`: how long others wait for a probe of this sink.
  SharedBreakers(std::vector<std::string> names, Milliseconds probe_time);

  const std::vector<std::string>& names() const { return names_; }
  /// Tells the others what `own`, one for each name in their order, has that they do not know, and returns
  /// the breakers as all know them now. Asks for the probe that is due, if there is one. `heard`: others may
  /// have changed something. nullopt if there is nothing to exchange.
  std::optional<std::vector<Breaker>> exchange(claim::SinkBoard& board, const std::vector<Breaker>& own,
                                               bool heard);
  /// Gives back the right to probe, which nothing has used.
  void give_back(claim::SinkBoard& board, const std::vector<Breaker>& own);
  /// Which of them are unavailable, and why: `relay.example:25 is unavailable: connection refused`, separated
  /// by semicolons. Empty if none is.
  std::string unavailability(const std::vector<Breaker>& own) const;

 private:
  std::vector<std::string> names_;
  Milliseconds probe_time_;
  std::vector<Breaker> shared_;
  std::vector<bool> holds_probe_;  ///< this process is the one to send the next probe
};
}  // namespace mailroom::delivery
