// Senders against relays that limit them, in virtual time: how long a backlog takes, and that no mail
// expires.

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "delivery/breaker.hpp"
#include "delivery/endpoint.hpp"
#include "delivery/pace.hpp"
#include "support/catch.hpp"
#include "support/simulated_relay.hpp"

namespace mailroom::test::pace_simulation_test {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr TimePoint start{1000h};
constexpr auto life = 15min;

struct SimulatedMail {
  int id = 0;
  TimePoint until{};
  delivery::Refusals refusals{};
};

/// The decisions of a dispatcher and of a sink, without threads and sockets.
struct SimulatedSender {
  delivery::Pace pace{0};
  delivery::AtOnce at_once{4};
  std::deque<SimulatedMail> waiting{};
  int in_flight = 0;
  int open = 0;  ///< connections, of which in_flight are busy
  TimePoint wakes_at{};
  int refused = 0;   ///< the mail that came too fast last
  int failures = 0;  ///< of its breaker
  TimePoint blocked_until{};
};

struct Play {
  Seconds took{};
  int taken = 0;
  int refused = 0;
  int expired = 0;
};

class Simulation {
 public:
  Simulation(const RelayRules& rules, int senders, int mails, unsigned seed)
      : relay_(rules), senders_(static_cast<std::size_t>(senders)), fresh_(mails), random_(seed) {
    for (auto& sender : senders_)
      sender.pace = delivery::Pace(++seed);
  }

  Play run() {
    at(start, [] {});
    while (!events_.empty() && left() > 0) {
      const auto event = events_.top();
      events_.pop();
      now_ = event.when;
      if (now_ - start > 2 * life) break;
      event.what();
      for (auto& sender : senders_)
        turn(sender);
    }
    play_.took = now_ - start;
    play_.expired += left();
    return play_;
  }

 private:
  struct Event {
    TimePoint when;
    std::int64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(when, number) > std::tie(other.when, other.number);
    }
  };

  void at(TimePoint when, std::function<void()> what) {
    events_.push({std::max(when, now_), ++events_made_, std::move(what)});
  }

  /// The sender has something to do then.
  void wake(SimulatedSender& sender, TimePoint when) {
    if (sender.wakes_at > now_ && sender.wakes_at <= when) return;
    sender.wakes_at = when;
    at(when, [] {});
  }

  int left() const {
    auto count = fresh_ + static_cast<int>(deferred_.size());
    for (const auto& sender : senders_)
      count += static_cast<int>(sender.waiting.size()) + sender.in_flight;
    return count;
  }

  void claim(SimulatedSender& sender) {
    const auto open = static_cast<int>(sender.waiting.size()) + sender.in_flight;
    if (sender.blocked_until > now_) return wake(sender, sender.blocked_until);
    const int room = sender.pace.room(10) - open;
    const auto from = sender.pace.next() - 1s + sender.pace.gap() * static_cast<int>(sender.waiting.size());
    if (room > 0 && sender.pace.limit() && from > now_) return wake(sender, from);
    for (int i = 0; i < room; ++i) {
      const bool is_due = !deferred_.empty() && deferred_.begin()->first <= now_;
      if (is_due) {
        deferred_.erase(deferred_.begin());
      } else if (fresh_ > 0) {
        --fresh_;
      } else {
        break;
      }
      sender.waiting.push_back({.id = ++mails_made_, .until = now_ + delivery::Pace::longest_wait});
    }
    if (!deferred_.empty() && deferred_.begin()->first > now_) wake(sender, deferred_.begin()->first);
  }

  void turn(SimulatedSender& sender) {
    const auto overdue = [&](const SimulatedMail& mail) { return mail.until <= now_; };
    for (auto n = std::erase_if(sender.waiting, overdue); n > 0; --n)
      give_back(1s);
    claim(sender);
    while (!sender.waiting.empty()) {
      if (sender.pace.next() > now_) return wake(sender, sender.pace.next());
      if (sender.in_flight >= sender.at_once.limit(now_)) {
        if (sender.at_once.is_lowered()) wake(sender, sender.at_once.raise_at());
        return;
      }
      send(sender);
    }
  }

  void send(SimulatedSender& sender) {
    const auto mail = sender.waiting.front();
    sender.waiting.pop_front();
    const bool is_kept = sender.in_flight < sender.open;
    ++sender.in_flight;
    sender.pace.left(now_);
    const auto left = now_;
    const auto connecting = is_kept ? 0ms : relay_.rules().latency;
    at(now_ + connecting, [this, &sender, mail, left, is_kept] {
      if (!is_kept && !relay_.connect()) {
        const int others = std::max(--sender.in_flight, sender.open);
        if (others > 0) {
          sender.at_once.refused_connection(others, left, now_);
          sender.waiting.push_front(mail);
        } else {
          sender.blocked_until = now_ + delivery::breaker_delay(++sender.failures, 0);
          for (give_back(1s); !sender.waiting.empty(); sender.waiting.pop_back())
            give_back(1s);
        }
        return;
      }
      if (!is_kept) ++sender.open;
      sender.failures = 0;
      relay_.begin();
      std::uniform_real_distribution<double> share(0.5, 1);
      const auto arrives = now_ + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                      relay_.rules().latency * share(random_));
      at(arrives, [this, &sender, mail, left] { end(sender, mail, left); });
    });
  }

  void end(SimulatedSender& sender, SimulatedMail mail, TimePoint left) {
    const auto verdict = relay_.end(now_);
    at(now_ + relay_.rules().latency / 4, [this, &sender, mail, left, verdict]() mutable {
      const int others = --sender.in_flight;
      while (sender.open > std::max(sender.at_once.limit(now_), 1)) {
        --sender.open;
        relay_.disconnect();
      }
      if (verdict == RelayVerdict::taken) {
        sender.pace.took(left, now_);
        ++play_.taken;
        if (now_ - start > life) ++play_.expired;
        return;
      }
      ++play_.refused;
      if (verdict == RelayVerdict::too_many && others > 0) {
        sender.at_once.refused_mail(others, left, now_);
      } else {
        const bool is_another = std::exchange(sender.refused, mail.id) != mail.id;
        if (is_another && mail.refusals.is_news(sender.pace)) sender.pace.refused(left, now_);
      }
      mail.refusals.add(sender.pace, now_);
      if (mail.refusals.are_many()) {
        give_back(3s);
      } else {
        sender.waiting.push_back(mail);
      }
    });
  }

  void give_back(std::chrono::seconds wait) {
    deferred_.emplace(now_ + wait + std::chrono::milliseconds(random_() % 1000), 0);
  }

  SimulatedRelay relay_;
  std::deque<SimulatedSender> senders_;
  int fresh_;
  std::multimap<TimePoint, int> deferred_;
  std::mt19937 random_;
  std::priority_queue<Event> events_;
  std::int64_t events_made_ = 0;
  int mails_made_ = 0;
  TimePoint now_ = start;
  Play play_;
};

/// The least time for so many mails.
Seconds ideal(const RelayRules& rules, int senders, int mails) {
  const Seconds a_mail = 1.25 * rules.latency;
  int lanes = 4 * senders;
  if (rules.connections > 0) lanes = std::min(lanes, rules.connections);
  if (rules.in_flight > 0) lanes = std::min(lanes, rules.in_flight);
  Seconds least = mails * a_mail / lanes;
  if (rules.mails > 0) least = std::max<Seconds>(least, (mails - 1) / rules.mails * Seconds(rules.window));
  if (rules.bucket_rate > 0)
    least = std::max(least, Seconds((mails - rules.bucket_size) / rules.bucket_rate));
  return least;
}

void check(RelayRules rules, const std::vector<int>& backlogs) {
  for (const auto latency : {1ms, 50ms, 1000ms}) {
    rules.latency = latency;
    for (const int senders : {1, 2, 4}) {
      for (const int mails : backlogs) {
        const auto least = ideal(rules, senders, mails);
        if (least > life / 2.0) continue;
        const auto play = Simulation(rules, senders, mails, 1).run();
        INFO(fmt::format("{}, {} ms, {} senders, {} mails: {:.1f} s, ideal {:.1f} s, {} refused, {} expired",
                         rules.name, latency.count(), senders, mails, play.took.count(), least.count(),
                         play.refused, play.expired));
        CHECK(play.taken == mails);
        CHECK(play.expired == 0);
        CHECK(play.took <= 2 * least + 2 * latency + 10s);
        CHECK(play.refused <= mails + 200);
      }
    }
  }
}

}  // namespace

TEST_CASE("a backlog passes a relay with a limit per second in nearly the least time") {
  for (const int mails : {1, 2, 5, 14, 50, 500})
    check({.name = fmt::format("{}/s", mails), .mails = mails},
          mails < 50 ? std::vector{20, 60, 200} : std::vector{20, 1000});
  check({.name = "100/s", .mails = 100}, {10'000});
  check({.name = "one in 5 s", .mails = 1, .window = 5s}, {20, 60});
}

TEST_CASE("a backlog passes a token bucket") {
  for (const double rate : {0.5, 1.0, 5.0, 14.0, 100.0}) {
    for (const int size : {rate > 1 ? 2 : 1, 10, 100})
      check({.name = fmt::format("bucket {}/s, {}", rate, size), .bucket_rate = rate, .bucket_size = size},
            {20, 500});
  }
}

TEST_CASE("a backlog passes a relay with a limit per minute") {
  for (const int mails : {10, 60, 300, 1000}) {
    check({.name = fmt::format("{}/min", mails), .mails = mails, .window = 60s}, {20, 100, 1000});
    check({.name = fmt::format("{} each minute", mails), .mails = mails, .window = 60s, .is_aligned = true},
          {20, 100, 1000});
  }
}

TEST_CASE("a backlog passes a relay that takes few connections, or few mails at once") {
  for (const int most : {1, 2, 3, 6}) {
    check({.name = fmt::format("{} connections", most), .connections = most}, {20, 500});
    check({.name = fmt::format("{} in flight", most), .in_flight = most}, {20, 500});
  }
  check({.name = "3 connections, 14/s", .mails = 14, .connections = 3}, {20, 500});
}

TEST_CASE("a relay without a limit gets a backlog as fast as it takes it") {
  const auto play = Simulation({.name = "any", .latency = 20ms}, 2, 10'000, 1).run();
  CHECK(play.refused == 0);
  CHECK(play.taken == 10'000);
  CHECK(play.took <= 1.1 * ideal({.latency = 20ms}, 2, 10'000));
}

}  // namespace mailroom::test::pace_simulation_test
