#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <thread>

#include "base/clock.hpp"
#include "base/output.hpp"
#include "base/stop_signal.hpp"
#include "queue/stop_watcher.hpp"

namespace mailroom {

/// All that reaches a collector from outside except the queue: time, signals, the reader's end, chance.
/// Behind an interface so that tests play them.
class Surroundings : public Clock {
 public:
  /// Returns when `socket` is readable, a signal came, or `until` has come. Throws Error(output_closed) when
  /// nobody reads the output any more.
  virtual void wait(int socket, TimePoint until) = 0;
  /// Returns early when a stop is requested.
  virtual void sleep_for(Milliseconds duration) = 0;
  /// Sleeps the whole time, stop or no stop.
  virtual void pause_for(Milliseconds duration) = 0;
  virtual bool stop_requested() const = 0;
  /// True once for each request to read the configuration again.
  virtual bool take_reload() = 0;
  /// What is waited for from here on, apart from a statement, until it is nothing.
  virtual void note_wait(Awaited /*awaited*/) {}
  /// Differs from process to process, so that many do not come back at the same instant.
  virtual std::uint64_t random_seed() = 0;
};

class SystemSurroundings final : public Surroundings {
 public:
  SystemSurroundings(StopSignal& signal, const Output& output, StopWatcher* watcher = nullptr)
      : signal_(signal), output_(output), watcher_(watcher) {}

  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  void wait(int socket, TimePoint until) override;
  void sleep_for(Milliseconds duration) override { signal_.sleep_for(duration); }
  void pause_for(Milliseconds duration) override { std::this_thread::sleep_for(duration); }
  bool stop_requested() const override { return signal_.requested(); }
  bool take_reload() override { return signal_.take_reload(); }
  void note_wait(Awaited awaited) override;
  std::uint64_t random_seed() override { return std::random_device{}(); }

 private:
  StopSignal& signal_;
  const Output& output_;
  StopWatcher* watcher_;
  std::optional<StopWatcher::Wait> wait_;
};

}  // namespace mailroom
