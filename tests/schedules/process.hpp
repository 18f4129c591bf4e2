#pragma once

#include <fcntl.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>

#include "base/output.hpp"
#include "consumer/collector.hpp"
#include "schedules/fiber.hpp"
#include "schedules/world.hpp"

namespace mailroom::test {

/// Ends a collector like the end of its process: the collector does not catch it.
struct Crashed {};

/// A collector's process: the real Collector on a fiber, in a world that simulates its environment, its
/// session and its reader. After a restart it continues with the same output file.
class Process final : public process::Environment {
 public:
  Process(World& world, int number);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool is_running() const { return fiber_ != nullptr; }
  void start();
  /// Starts the process once its current life has ended, unless the world closes first.
  void start_when_gone() { start_after(life_); }
  void stop();
  void crash();
  void close_output();
  void break_connection();
  /// Reloads the configuration, with this limit, and with another session identity if `elsewhere`.
  void reload(int limit, bool elsewhere);
  /// The whole output.
  std::string written() const;

  /// Wakes the collector if it waits for something that has happened. Called after each event.
  void poke();

  // Used by the collector's session, encoder and environment.
  Mishap begin(Step step);
  void travel();
  void wait_for_reader();
  void tear(std::string_view line);
  std::unique_ptr<claim::QueueSession> connect();
  World& world() { return world_; }
  int life() const { return life_; }
  void lost_session(int socket) {
    if (socket_ == socket) socket_.reset();
  }

  TimePoint now() const override { return world_.time.now(); }
  void wait(int socket, TimePoint until) override;
  void sleep_for(Milliseconds duration) override;
  void pause_for(Milliseconds duration) override;
  bool stop_requested() const override { return stop_; }
  bool take_reload() override { return std::exchange(reload_, false); }
  std::uint64_t random_seed() override { return world_.below(1'000'000'000); }

 private:
  void live();
  void start_after(int life);
  void go_on(std::int64_t turn);
  void end_life();
  /// Yields until `until`, or until `wakes` returns true after an event.
  void block(TimePoint until, std::function<bool()> wakes);
  consumer::CollectorSetup setup();
  consumer::Batcher::Options batcher_options() const;
  bool output_is_closed() const { return output_.fd() != file_; }

  World& world_;
  int number_;
  int file_;
  Output output_{-1};
  std::unique_ptr<Fiber> fiber_;
  std::function<bool()> wakes_;
  std::int64_t turn_ = 0;  ///< a wake-up for an earlier turn is ignored
  std::optional<int> socket_;
  int life_ = -1;
  int limit_;
  int identity_ = 0;
  bool stop_ = false;
  bool reload_ = false;
  bool crash_ = false;
};

}  // namespace mailroom::test
