// The relays or servers of a carrier: what is known of each, the limits that follow, and which one is next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "delivery/answer.hpp"
#include "delivery/at_once.hpp"
#include "delivery/breaker.hpp"
#include "delivery/pace.hpp"
#include "delivery/refusal_memory.hpp"

namespace mailroom {

/// When a message left, and how.
struct Departure {
  TimePoint left{};
  WallTime began{};
  bool is_probe = false;  ///< of an endpoint that was unavailable
};

/// One endpoint of a carrier: whether it takes messages, at which rate, and how many at once. Pure: takes
/// times.
class Endpoint {
 public:
  /// `in_flight`: how many messages it is given at the same time.
  Endpoint(std::string name, int in_flight, std::uint64_t seed);

  /// Whether it may be given a message now.
  enum class Leave {
    given,  ///< also to the probe of an unavailable one
    later,  ///< a probe is under way, and shows it
    none,   ///< it is unavailable
  };
  Leave leave(WallTime now) const;
  /// True if its limits let a further message leave now, or up to `ahead` more than are in flight at once.
  bool has_room(TimePoint now, int ahead);
  bool is_limited(TimePoint now) const;
  /// When has_room() becomes true again without an answer.
  TimePoint next_room(TimePoint now, int ahead);

  /// A message leaves. `probe_time`: how long other processes wait for a probe of this one.
  Departure left(TimePoint now, WallTime wall, Milliseconds probe_time);
  /// It came back untried.
  void came_back(const Departure& departure);
  /// Weighs an answer by what other messages get, learns from it, and corrects its verdict. `refusals`: those
  /// that the message had before.
  void learn(Answer& answer, const Refusals& refusals, const Departure& departure, TimePoint now,
             WallTime wall, double chance);
  /// A message was refused by a limit again and again, while others were taken: no limit was meant.
  void meets_some(const std::string& refusal, WallTime wall);

  /// The time until it is probed; nullopt if it is available.
  std::optional<std::chrono::seconds> time_to_probe(WallTime wall) const;
  /// How long it is given nothing, as others have all connections that it allows; 0 or less: it is given
  /// some.
  std::chrono::nanoseconds closed_for(TimePoint now) const { return at_once_.opens_at() - now; }
  /// How many connections it takes.
  int connections(TimePoint now) { return at_once_.limit(now); }

  const std::string& name() const { return name_; }
  const Pace& pace() const { return pace_; }
  const Breaker& breaker() const { return breaker_; }
  void set_breaker(const Breaker& breaker) { breaker_ = breaker; }
  /// True if it has answered a message of this process a moment ago.
  bool is_answering(TimePoint now) const;

 private:
  int most_in_flight(TimePoint now, int ahead);
  void weigh(Answer& answer, const Departure& departure, WallTime wall);
  void learn_rate(const Answer& answer, const Refusals& refusals, TimePoint left, TimePoint now);
  /// True if no more than a further connection was refused.
  bool is_one_too_many(const Answer& answer, TimePoint left, TimePoint now);

  std::string name_;
  Breaker breaker_;
  bool is_probed_ = false;  ///< by a message of this process, now
  RefusalMemory refusals_;
  Pace pace_;
  AtOnce at_once_;
  int most_;
  int in_flight_ = 0;
  TimePoint last_answered_{};  ///< a message
  std::int64_t refused_ = -1;  ///< the message that came too fast last
};

/// A message goes to the first endpoint that is available. Pure: takes times.
class Endpoints {
 public:
  Endpoints(const std::vector<std::string>& names, int in_flight, std::uint64_t seed);

  struct Choice {
    Endpoint::Leave leave = Endpoint::Leave::none;
    std::size_t place = 0;
  };
  /// The first from place `first` on that takes a message. `later` if none does, and one is being probed.
  Choice choose(std::size_t first, WallTime now) const;

  Endpoint& operator[](std::size_t place) { return endpoints_[place]; }
  const Endpoint& front() const { return endpoints_.front(); }
  std::size_t size() const { return endpoints_.size(); }
  /// Where the next message goes, unless that turns out to be unavailable.
  const Endpoint& likely() const;
  bool is_limited(TimePoint now) const;
  /// The time until a message is taken; nullopt if one is now.
  std::optional<std::chrono::seconds> time_to_admission(TimePoint now, WallTime wall) const;

  std::vector<Breaker> breakers() const;
  /// See Dispatcher::set_breakers().
  void set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers, TimePoint now);

 private:
  std::vector<Endpoint> endpoints_;
};

}  // namespace mailroom
