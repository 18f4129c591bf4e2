// The line that systemctl status shows of a consumer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"

namespace mailroom {

/// What the status line of a service says. Pure.
class ServiceStatus {
 public:
  explicit ServiceStatus(TimePoint now) : renewed_(now) {}

  void connected() { is_connected_ = true; }
  void disconnected() { is_connected_ = false; }
  /// The sink delivers a batch from `now` on, until finished().
  void delivers(TimePoint now) { delivering_since_ = now; }
  /// `age`: of the oldest token of the batch, if any.
  void finished(int emitted, std::optional<Milliseconds> age);
  /// A claim has taken a batch of a queue or none, and has seen so many due tokens that it did not take.
  void claimed(const std::string& queue, bool took, int pending) { claims_[queue] = {took, pending}; }
  /// True if more tokens may wait than the last claims have seen.
  bool is_behind() const;
  /// So many tokens wait in all queues; nullopt if that is not known.
  void counted(std::optional<std::int64_t> waiting) { counted_ = waiting; }

  /// The line, with the rate since the last call.
  std::string renew(TimePoint now);

 private:
  std::int64_t waiting() const;

  bool is_connected_ = false;
  std::optional<TimePoint> delivering_since_;
  struct LastClaim {
    bool took = false;
    int pending = 0;
  };
  std::map<std::string, LastClaim> claims_;  ///< by queue
  std::optional<std::int64_t> counted_;
  std::int64_t emitted_ = 0;
  std::int64_t emitted_before_ = 0;     ///< by the last call of renew()
  std::optional<Milliseconds> oldest_;  ///< age of the oldest token emitted since then
  TimePoint renewed_;
};

}  // namespace mailroom
