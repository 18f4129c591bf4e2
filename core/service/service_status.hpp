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
  /// So many due tokens of a queue were seen and not taken.
  void claimed(const std::string& queue, int pending) { pending_[queue] = pending; }

  /// The line, with the rate since the last call.
  std::string renew(TimePoint now);

 private:
  bool is_connected_ = false;
  std::optional<TimePoint> delivering_since_;
  std::map<std::string, int> pending_;
  std::int64_t emitted_ = 0;
  std::int64_t emitted_before_ = 0;     ///< by the last call of renew()
  std::optional<Milliseconds> oldest_;  ///< age of the oldest token emitted since then
  TimePoint renewed_;
};

}  // namespace mailroom
