#include "simulation/simulation.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <thread>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "simulation/emission_watch.hpp"
#include "simulation/simulation_worker.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds shortest_pause{20};
constexpr Milliseconds longest_pause{200};
constexpr std::size_t max_waiting = 1'000'000;

using Connect = std::function<std::unique_ptr<Connection>()>;
using Report = std::function<void(const SimulationProgress&)>;

/// The threads of one simulation. The destructor ends them.
class Play {
 public:
  Play(const SimulationRequest& request, const Connect& connect, const StopSignal& signal,
       const Report& report)
      : request_(request),
        signal_(signal),
        report_(report),
        start_(now_of_play()),
        last_release_(start_),
        dealer_(request.accounts, request.rate, AccountPlanner(request.seed, request.shares), start_) {
    if (!request.delay && request.shares.activate > 0) {
      watched_ = lasting(connect, [this] {
        tell();
        return !signal_.requested();
      });
      watch_.emplace(*watched_);
    }
    const auto count = static_cast<std::size_t>(request.connections);
    for (std::size_t i = 0; i < count; ++i) {
      connections_.push_back(lasting(connect, [this] { return !state_.stopping; }));
      workers_.push_back(std::make_unique<SimulationWorker>(*connections_.back(), request, dealer_, state_,
                                                            max_waiting / count));
    }
  }

  ~Play() {
    stop();
    join();
  }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  SimulationSummary run() {
    running_ = workers_.size();
    for (const auto& worker : workers_)
      threads_.emplace_back([this, &worker] { work(*worker); });
    bool stopped = false;
    while (!all_ended_within(pause_)) {
      if (signal_.requested() && !stopped) {
        stopped = true;
        stop();
      }
      if (watch_ && !stopped) look_for_emissions();
      tell();
    }
    join();
    if (failure_) std::rethrow_exception(failure_);
    tell();
    return summarise(stopped);
  }

 private:
  std::unique_ptr<LastingConnection> lasting(const Connect& connect, std::function<bool()> go_on) {
    return std::make_unique<LastingConnection>(
        connect(), LastingConnection::Ways{.connect = connect,
                                           .patience = request_.timeout,
                                           .go_on = std::move(go_on),
                                           .lost = [this](const std::string& reason) { note_loss(reason); },
                                           .back = [this] { --lost_; }});
  }

  void note_loss(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    ++lost_;
    reason_ = reason;
  }

  void tell() {
    std::unique_lock lock(mutex_);
    const SimulationProgress progress{
        .accounts = state_.accounts, .waiting = state_.waiting, .lost = lost_, .reason = reason_};
    lock.unlock();
    report_(progress);
  }

  void work(SimulationWorker& worker) noexcept {
    std::exception_ptr failure;
    try {
      worker.run();
    } catch (const ConnectionLost&) {
      // A connection that is lost while stopping is no failure.
      if (!state_.stopping) failure = std::current_exception();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) stop();
    const std::lock_guard lock(mutex_);
    if (failure && !failure_) failure_ = failure;
    --running_;
    ended_.notify_one();
  }

  bool all_ended_within(Milliseconds limit) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, limit, [this] { return running_ == 0; });
  }

  void stop() {
    state_.stopping = true;
    for (const auto& worker : workers_)
      worker->wake();
  }

  void join() {
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  void look_for_emissions() {
    try {
      poll_emissions();
    } catch (const ConnectionLost&) {
      if (!signal_.requested()) throw;
    }
  }

  void poll_emissions() {
    const auto now = now_of_play();
    const auto released = state_.released.load();
    if (state_.waiting == 0 || released != released_) last_release_ = now;
    released_ = released;
    if (state_.waiting == 0) return;
    const auto emitted = watch_->poll();
    if (!emitted.empty()) {
      for (const auto& worker : workers_)
        worker->deliver(emitted);
    }
    pause_ = emitted.empty() ? std::min(pause_ * 3 / 2, longest_pause) : shortest_pause;
    if (now - last_release_ >= request_.timeout) throw no_emission();
  }

  Error no_emission() const {
    return Error(ExitCode::failed,
                 fmt::format("no collector has emitted any of the {} waiting tokens for {}",
                             with_thousands(state_.waiting), format_duration(request_.timeout)),
                 "start a collector, as a service or into a file, or use --delay to run without one");
  }

  SimulationSummary summarise(bool stopped) const {
    SimulationSummary summary;
    for (const auto& worker : workers_)
      summary.total.merge(worker->tally());
    summary.seconds = std::chrono::duration<double>(now_of_play() - start_).count();
    const double creating = std::chrono::duration<double>(summary.total.last_creation - start_).count();
    if (creating > 0) summary.accounts_per_second = static_cast<double>(summary.total.accounts) / creating;
    summary.stopped = stopped;
    return summary;
  }

  const SimulationRequest& request_;
  const StopSignal& signal_;
  const Report& report_;
  const TimePoint start_;
  TimePoint last_release_;
  AccountDealer dealer_;
  PlayState state_;
  std::unique_ptr<LastingConnection> watched_;
  std::optional<EmissionWatch> watch_;
  std::int64_t released_ = 0;
  Milliseconds pause_ = shortest_pause;
  std::vector<std::unique_ptr<LastingConnection>> connections_;
  std::vector<std::unique_ptr<SimulationWorker>> workers_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
  std::exception_ptr failure_;
  std::atomic<int> lost_{0};
  std::string reason_;
};

}  // namespace

void SimulationTally::merge(const SimulationTally& other) {
  accounts += other.accounts;
  tokens += other.tokens;
  activated += other.activated;
  recovered += other.recovered;
  suspended += other.suspended;
  expired += other.expired;
  latency.merge(other.latency);
  last_creation = std::max(last_creation, other.last_creation);
}

SimulationSummary simulate(const SimulationRequest& request,
                           const std::function<std::unique_ptr<Connection>()>& connect,
                           const StopSignal& stop,
                           const std::function<void(const SimulationProgress&)>& report) {
  return Play(request, connect, stop, report).run();
}

}  // namespace mailroom
