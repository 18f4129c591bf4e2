// Reports on a consumer to systemd, so that it is started, watched and shown correctly.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "consumer/consumer_observer.hpp"
#include "db/conninfo.hpp"
#include "process/stop_signal.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom::consumer {

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

/// The service manager that started this process and waits for its notifications, such as systemd; see
/// sd_notify(3). Without one every call does nothing. Any thread may call.
class ServiceManager {
 public:
  /// Warns if a service manager waits and this build cannot notify it. `log` must outlive this.
  explicit ServiceManager(Log& log);

  bool is_present() const { return is_present_; }
  /// How long the service manager waits for alive() before it kills the process; nullopt: for ever.
  std::optional<Milliseconds> patience() const { return patience_; }

  void ready() const { notify("READY=1"); }
  void reloading() const;
  void stopping() const { notify("STOPPING=1\nSTATUS=stopping"); }
  void alive() const { notify("WATCHDOG=1"); }
  /// `status` is one line, for people.
  void show(const std::string& status) const { notify("STATUS=" + status); }

 private:
  void notify(const std::string& state) const;

  Log& log_;
  bool is_present_ = false;
  std::optional<Milliseconds> patience_;
};

/// Counts the tokens that wait; nullopt if that is not known. Waits a few seconds at most.
using CountBacklog = std::function<std::optional<std::int64_t>()>;

/// Counts as `mailroom status` does, in all of `queues`, on a session of its own that ends with the count.
CountBacklog backlog_counter(const db::DatabaseTarget& target, const std::vector<std::string>& queues);

/// Tells the service manager what a consumer does: that it is ready (after the first poll, or when its relay
/// is unavailable), that it reloads and stops, its status, and that its loop turns. A thread of its own says
/// that it stops and that it is alive, since the loop may wait for its reader, its relays or the database
/// meanwhile: these waits count as alive, as a restart would not end them, and repeat a batch.
class ServiceReporter final : public ConsumerObserver {
 public:
  /// How often the status is renewed, and how often the tokens that wait are counted if a claim does not see
  /// all.
  static constexpr Milliseconds status_interval{5000};
  static constexpr Milliseconds count_interval{15000};

  /// The loop counts as having turned when it `started`. Everything must outlive this. Without a service
  /// manager this does nothing.
  ServiceReporter(const ServiceManager& manager, const process::StopSignal& signal,
                  const process::StopWatcher& watcher, TimePoint started = steady_now());
  ~ServiceReporter() override;
  ServiceReporter(const ServiceReporter&) = delete;
  ServiceReporter& operator=(const ServiceReporter&) = delete;

  /// How the tokens that wait are counted from now on.
  void count_with(CountBacklog count);

  void turned(TimePoint now) override { loop_.turned(now); }
  void waits(TimePoint until) override;
  void delivers() override;
  void connected() override;
  void disconnected() override;
  void claimed(const ObservedClaim& claim) override;
  void finished(const FinishedBatch& batch) override;
  void reloading() override;
  void reloaded(bool succeeded) override;

 private:
  void become_ready();
  void watch();
  bool is_alive(TimePoint now) const;
  void renew_status(TimePoint now);
  void count_backlog(TimePoint now);

  const ServiceManager& manager_;
  const process::StopSignal& signal_;
  const process::StopWatcher& watcher_;
  LoopState loop_;
  bool has_session_ = false;
  bool is_ready_ = false;
  std::mutex mutex_;  ///< of the next three
  ServiceStatus status_;
  std::string shown_;
  CountBacklog count_;
  TimePoint next_count_{};  ///< of the thread
  int end_ = -1;            ///< an eventfd, readable when this ends
  std::thread thread_;
};

}  // namespace mailroom::consumer
