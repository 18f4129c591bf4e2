// Relays that limit what they take, in virtual time.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "base/clock.hpp"

namespace mailroom::test {

/// A limit of a relay; what is 0 does not limit.
struct RelayRules {
  std::string name{};
  int mails = 0;                           ///< at most so many ...
  std::chrono::milliseconds window{1000};  ///< ... within any time of this length,
  bool is_aligned = false;                 ///< or from a multiple of it to the next
  double bucket_rate = 0;                  ///< a token bucket, mails per second
  int bucket_size = 1;
  int connections = 0;
  int in_flight = 0;
  std::chrono::milliseconds latency{20};  ///< of a mail, and of opening a connection
};

enum class RelayVerdict { taken, too_fast, too_many };

class SimulatedRelay {
 public:
  explicit SimulatedRelay(RelayRules rules) : rules_(std::move(rules)), bucket_(rules_.bucket_size) {}

  /// False if it refuses a further connection.
  bool connect() {
    if (rules_.connections > 0 && open_ >= rules_.connections) return false;
    ++open_;
    return true;
  }
  void disconnect() { --open_; }
  void begin() { ++in_flight_; }
  /// The end of a message comes.
  RelayVerdict end(TimePoint now) {
    const bool is_crowded = rules_.in_flight > 0 && in_flight_ > rules_.in_flight;
    --in_flight_;
    if (is_crowded) return RelayVerdict::too_many;
    return takes(now) ? RelayVerdict::taken : RelayVerdict::too_fast;
  }
  const RelayRules& rules() const { return rules_; }

 private:
  bool takes(TimePoint now) {
    if (rules_.bucket_rate > 0) {
      const std::chrono::duration<double> passed = now - filled_at_;
      bucket_ = std::min<double>(rules_.bucket_size, bucket_ + passed.count() * rules_.bucket_rate);
      filled_at_ = now;
      if (bucket_ < 1) return false;
      bucket_ -= 1;
    }
    if (rules_.mails > 0) {
      while (!taken_.empty() && is_past(taken_.front(), now))
        taken_.pop_front();
      if (taken_.size() >= static_cast<std::size_t>(rules_.mails)) return false;
      taken_.push_back(now);
    }
    return true;
  }
  bool is_past(TimePoint taken, TimePoint now) const {
    if (!rules_.is_aligned) return now - taken >= rules_.window;
    return now.time_since_epoch() / rules_.window != taken.time_since_epoch() / rules_.window;
  }

  RelayRules rules_;
  int open_ = 0;
  int in_flight_ = 0;
  std::deque<TimePoint> taken_;
  double bucket_;
  TimePoint filled_at_{};
};

}  // namespace mailroom::test
