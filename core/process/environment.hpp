// What a long-running command asks of the system and waits for, replaceable in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <thread>

#include "base/clock.hpp"
#include "process/stop_signal.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom::process {

/// Everything a collector depends on except the queue: time, signals, the state of the reader, random
/// numbers. An interface, so that tests can simulate it.
class Environment : public Clock {
 public:
  /// Returns when `socket` is readable, on a signal, or at `until`. Throws ReaderGone when the
  /// reader of the output has gone.
  virtual void wait(int socket, TimePoint until) = 0;
  /// Sleeps; returns early if a stop is requested.
  virtual void sleep_for(Milliseconds duration) = 0;
  /// Sleeps the whole time, even if a stop is requested.
  virtual void pause_for(Milliseconds duration) = 0;
  virtual bool stop_requested() const = 0;
  /// True once for each request to reload the configuration.
  virtual bool take_reload() = 0;
  /// Sets what the collector waits for from now on, other than a statement; Awaited::nothing ends the wait.
  virtual void note_wait(Awaited /*awaited*/) {}
  /// Differs between processes, so that their back-off delays differ.
  virtual std::uint64_t random_seed() = 0;
};

class SystemEnvironment final : public Environment {
 public:
  /// `peer`: a pipe or socket whose reader wait() watches; -1 for none.
  SystemEnvironment(StopSignal& signal, int peer, StopWatcher* watcher = nullptr)
      : signal_(signal), peer_(peer), watcher_(watcher) {}

  TimePoint now() const override { return steady_now(); }
  void wait(int socket, TimePoint until) override;
  void sleep_for(Milliseconds duration) override { signal_.sleep_for(duration); }
  void pause_for(Milliseconds duration) override { std::this_thread::sleep_for(duration); }
  bool stop_requested() const override { return signal_.requested(); }
  bool take_reload() override { return signal_.take_reload(); }
  void note_wait(Awaited awaited) override;
  std::uint64_t random_seed() override { return std::random_device{}(); }

 private:
  StopSignal& signal_;
  int peer_;
  StopWatcher* watcher_;
  std::optional<StopWatcher::Wait> wait_;
};

}  // namespace mailroom::process
