// The relays or servers of a carrier: what is known of each, the limits that follow, and which one is next.
//
// It counts and compares answers. It does not send, does not wait and has no clock; it does not decide
// whether a refused mail is tried again (dispatch_answers), and does not read a reply's words (the carriers
// do).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "delivery/answer.hpp"
#include "delivery/breaker.hpp"
#include "delivery/domain_limits.hpp"
#include "delivery/pace.hpp"
#include "delivery/probe_choice.hpp"
#include "delivery/refusal_memory.hpp"

namespace mailroom::delivery {

/// How many connections a relay takes of us, or how many mails at once, learnt from those that it refused as
/// too many. One more is tried after 10 s, and twice as late after each refusal, at most after 5 minutes.
/// Pure: takes times.
class AtOnce {
 public:
  static constexpr std::chrono::seconds soonest{10};
  static constexpr std::chrono::seconds latest{300};

  explicit AtOnce(int most) : most_(most), limit_(most) {}

  /// How many may be now; 0 while the relay takes not even one.
  int limit(TimePoint now) {
    if (now < opens_at_) return 0;
    for (; limit_ < most_ && now >= raise_at_; raise_at_ = now + raise_after_)
      ++limit_;
    if (limit_ == most_ && now >= raise_at_) raise_after_ = soonest;
    return limit_;
  }
  /// A connection was refused that was begun at `began`; `others` remain.
  void refused_connection(int others, TimePoint began, TimePoint now) {
    limit_ = std::clamp(others, 1, limit_);
    if (began >= lowered_at_) note_refusal(now);
  }
  /// A mail was refused that left at `left`; `others` are under way. Mails that left before the last refusal
  /// were under way with that one.
  void refused_mail(int others, TimePoint left, TimePoint now) {
    if (left < lowered_at_) return;
    limit_ = std::clamp(others, 1, limit_);
    note_refusal(now);
  }
  /// The only connection was refused: others have all that the relay allows. One more is tried after 1 s, and
  /// twice as late after each refusal, at most after 30 s. False from the refusal that
  /// follows the longest wait on: then the relay takes no connection of this host.
  bool refused_all(TimePoint now) {
    constexpr int last = 6;
    opens_at_ =
        now + std::min(std::chrono::seconds(1 << std::min(refused_all_, last)), std::chrono::seconds(30));
    return ++refused_all_ <= last;
  }
  /// The relay has answered a mail.
  void answered() { refused_all_ = 0; }
  /// The relay was unavailable, so what it refused was no limit.
  void forget() { limit_ = most_; }

  bool is_lowered() const { return limit_ < most_; }
  TimePoint raise_at() const { return std::max(raise_at_, opens_at_); }
  /// When the relay may take a connection again; a time in the past means now.
  TimePoint opens_at() const { return opens_at_; }

 private:
  void note_refusal(TimePoint now) {
    lowered_at_ = now;
    raise_at_ = now + raise_after_;
    raise_after_ = std::min(2 * raise_after_, latest);
  }

  int most_;
  int limit_;
  std::chrono::seconds raise_after_ = soonest;
  TimePoint raise_at_{};
  TimePoint lowered_at_{};
  int refused_all_ = 0;  ///< times in a row
  TimePoint opens_at_{};
};

/// When a message left, and how.
struct Departure {
  TimePoint left{};
  WallTime began{};
  bool is_probe = false;  ///< of an endpoint that was unavailable
  WallTime next_probe{};  ///< when the probe was due, if it is one
};

/// What is known of a message that has an answer, from before.
struct RefusedBefore {
  Likeness likeness{};
  std::string domain{};  ///< of its recipient
  bool was_refused = false;
  Refusals refusals{};  ///< by a limit
  /// Of several mails, of which some were accepted: the senders that were refused, with code and words.
  std::map<std::string, std::string> refused_senders{};
};

/// One endpoint of a carrier: whether it takes messages, at which rate, and how many at once. Pure: takes
/// times.
class Endpoint {
 public:
  /// `in_flight`: how many messages it is given at the same time. `rate`: how fast at most.
  Endpoint(std::string name, int in_flight, std::optional<config::Rate> rate, std::uint64_t seed);

  /// Whether it may be given a message now.
  enum class Leave {
    given,  ///< also to the probe of an unavailable one
    later,  ///< a probe is under way, and its answer decides
    aside,  ///< it is unavailable, and another message shows sooner whether it refuses all
    none,   ///< it is unavailable
  };
  Leave leave(WallTime now, const Likeness& likeness) const;
  /// A message waits here, for the time that is returned.
  Milliseconds set_aside(WallTime now, const Likeness& likeness);
  /// True if its limits let a further message leave now, or up to `ahead` more than are in flight at once.
  bool has_room(TimePoint now, int ahead);
  bool is_limited(TimePoint now) const;
  /// When has_room() becomes true again without an answer.
  TimePoint next_room(TimePoint now, int ahead);

  /// A message leaves. `probe_time`: how long other processes wait for a probe of this one.
  Departure left(TimePoint now, WallTime wall, Milliseconds probe_time, const Likeness& likeness);
  /// Answers were taken that came at the same time: each is judged by what was in flight before all of them.
  void answers_came() { at_answers_ = in_flight_; }
  /// It came back untried. The probe that it was may leave at once.
  void came_back_untried(const Departure& departure);
  /// Weighs an answer by what other messages get, learns from it, and corrects its verdict.
  void learn(Answer& answer, const RefusedBefore& before, const Departure& departure, TimePoint now,
             WallTime wall, double chance);
  /// How long a message to `domain` waits, as the endpoint takes fewer of those; nullopt: it leaves.
  std::optional<Milliseconds> wait_of(const std::string& domain, TimePoint now) {
    return domains_.wait(domain, now);
  }
  /// A message was refused by a limit again and again, while others were taken: no limit was meant.
  void meets_some(const std::string& refusal, WallTime wall);

  /// The time until it is probed; nullopt if it is available.
  std::optional<std::chrono::seconds> time_to_probe(WallTime wall) const;
  /// How long no message goes to it, since other processes hold all connections that it allows; 0 or less:
  /// messages go to it.
  std::chrono::nanoseconds closed_for(TimePoint now) const { return at_once_.opens_at() - now; }
  /// How many connections it takes.
  int connections(TimePoint now) { return at_once_.limit(now); }

  const std::string& name() const { return name_; }
  const Pace& pace() const { return pace_; }
  const Breaker& breaker() const { return breaker_; }
  /// With what was learnt of refusals, as other processes get it.
  Breaker shared(WallTime wall) const;
  /// Takes what others know, where nothing has changed since it was as in `seen`.
  void share(const Breaker& seen, const Breaker& known, TimePoint now, WallTime wall);
  /// True while it is unavailable and a message is looked for that it takes, without a pause.
  bool is_searching() const { return searches_ && !probe_choice_.is_over(); }
  /// True if it has answered a message of this process a moment ago.
  bool is_answering(TimePoint now) const;

 private:
  void came_back(const Departure& departure);
  void note_search(const Answer& answer, bool was_open);
  int most_in_flight(TimePoint now, int ahead);
  void weigh(Answer& answer, const RefusedBefore& before, const Departure& departure, TimePoint now,
             WallTime wall);
  void weigh_refusal(Answer& answer, const RefusedBefore& before, WallTime wall);
  void note_accepted(const std::string& sender);
  void learn_rate(const Answer& answer, const Refusals& refusals, TimePoint left, TimePoint now);
  /// True if no more than a further connection was refused.
  bool is_one_too_many(const Answer& answer, TimePoint left, TimePoint now);

  std::string name_;
  Breaker breaker_;
  bool is_probed_ = false;  ///< by a message of this process, now
  bool searches_ = false;   ///< it refuses messages, and others show whether it takes those
  ProbeChoice probe_choice_;
  RefusalMemory refusals_;
  std::set<std::string> accepted_senders_;
  DomainLimits domains_;
  Pace pace_;
  AtOnce at_once_;
  int most_;
  int in_flight_ = 0;
  int at_answers_ = 0;         ///< in flight before the answers that are being learnt from
  TimePoint last_answered_{};  ///< a message
  std::string seen_{};         ///< what was learnt, as it was shared last
  std::int64_t refused_ = -1;  ///< the message that came too fast last
};

/// A message goes to the first endpoint that is available. Pure: takes times.
class Endpoints {
 public:
  Endpoints(const std::vector<std::string>& names, int in_flight, std::optional<config::Rate> rate,
            std::uint64_t seed);

  struct Choice {
    Endpoint::Leave leave = Endpoint::Leave::none;
    std::size_t place = 0;
  };
  /// The first from place `first` on that takes a message. `later` if none does, and one is being probed;
  /// `aside` if others show sooner whether one takes it.
  Choice choose(std::size_t first, WallTime now, const Likeness& likeness) const;

  Endpoint& operator[](std::size_t place) { return endpoints_[place]; }
  /// See Endpoint::answers_came().
  void answers_came();
  const Endpoint& front() const { return endpoints_.front(); }
  std::size_t size() const { return endpoints_.size(); }
  /// Where the next message goes, unless that turns out to be unavailable.
  const Endpoint& likely() const;
  bool is_limited(TimePoint now) const;
  /// True if one is limited, or unavailable.
  bool is_hampered(TimePoint now) const;
  bool is_searching() const { return std::ranges::any_of(endpoints_, &Endpoint::is_searching); }
  bool is_answering(TimePoint now) const {
    return std::ranges::any_of(endpoints_, [&](const auto& each) { return each.is_answering(now); });
  }
  /// The time until a message is taken; nullopt if one is now.
  std::optional<std::chrono::seconds> time_to_admission(TimePoint now, WallTime wall) const;

  std::vector<Breaker> breakers(WallTime wall) const;
  /// See Dispatcher::set_breakers().
  void set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers, TimePoint now,
                    WallTime wall);

 private:
  std::vector<Endpoint> endpoints_;
};

}  // namespace mailroom::delivery
