// Reports on a consumer to systemd, so that it is started, watched and shown correctly.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "consumer/consumer_observer.hpp"
#include "db/database_target.hpp"
#include "process/stop_signal.hpp"
#include "process/stop_watcher.hpp"
#include "service/service_manager.hpp"
#include "service/service_status.hpp"

namespace mailroom {

/// Counts the tokens that wait; nullopt if that is not known. Waits a few seconds at most.
using CountBacklog = std::function<std::optional<std::int64_t>()>;

/// Counts as `mailroom status` does, in all of `queues`, on a session of its own that ends with the count.
CountBacklog backlog_counter(const DatabaseTarget& target, const std::vector<std::string>& queues);

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
  ServiceReporter(const ServiceManager& manager, const StopSignal& signal, const StopWatcher& watcher,
                  TimePoint started = steady_now());
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
  const StopSignal& signal_;
  const StopWatcher& watcher_;
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

}  // namespace mailroom
