#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "process/environment.hpp"

namespace mailroom::test {

/// Virtual time and its events. Starts at one hour, so that a default time point is always in the past.
class FakeEnvironment final : public process::Environment {
 public:
  /// Runs `event` at this time after the start.
  void at(Milliseconds since_start, std::function<void()> event);
  void at(TimePoint time, std::function<void()> event);
  void request_stop() { stop_ = true; }
  void request_reload() { reload_ = true; }
  /// Adds sockets; `readable` receives the index of a socket. Returns the number of the first one; the others
  /// follow.
  int add_sockets(std::function<bool(std::size_t index)> readable);
  /// Advances to the next event and runs it, or advances to `until`.
  void step_to(TimePoint until);
  /// Advances the time, and runs the events on the way.
  void advance(Milliseconds duration);
  Milliseconds elapsed() const { return std::chrono::duration_cast<Milliseconds>(now_ - start); }

  TimePoint now() const override { return now_; }
  void wait(int socket, TimePoint until) override;
  void sleep_for(Milliseconds duration) override;
  void pause_for(Milliseconds duration) override { advance(duration); }
  bool stop_requested() const override { return stop_; }
  bool take_reload() override { return std::exchange(reload_, false); }
  std::uint64_t random_seed() override { return 1; }

  bool is_readable(int socket) const;

 private:
  static constexpr TimePoint start{std::chrono::hours(1)};

  TimePoint now_ = start;
  std::multimap<TimePoint, std::function<void()>> events_;
  std::vector<std::function<bool(std::size_t)>> readable_;
  bool stop_ = false;
  bool reload_ = false;
};

}  // namespace mailroom::test
