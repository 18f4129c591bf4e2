// The threads around one schedule, which they take turns at under a mutex.

#include "simulation/simulation.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <fmt/format.h>
#include <list>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "simulation/emission_watch.hpp"
#include "simulation/schedule.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds shortest_pause{20};
constexpr Milliseconds longest_pause{200};
constexpr std::int64_t max_waiting = 1'000'000;

using Connect = std::function<std::unique_ptr<Connection>()>;
using Report = std::function<void(const SimulationProgress&)>;

/// One simulation. A thread for each connection creates accounts and consumes tokens; the caller's thread
/// watches for emissions and makes tokens ready. The destructor ends the threads.
class Play {
 public:
  Play(const SimulationRequest& request, const Connect& connect, const StopSignal& signal,
       const Report& report)
      : request_(request), signal_(signal), report_(report), schedule_(request, start_) {
    if (!request.delay && request.shares.activate > 0) {
      watched_.emplace(lasting(connect, [this] {
        tell();
        return !signal_.requested();
      }));
      watch_.emplace(*watched_);
    }
    const auto connect_and_prepare = [connect] {
      auto session = connect();
      SimulatedRows::prepare(*session);
      return session;
    };
    const auto go_on = [this] {
      const std::lock_guard lock(mutex_);
      return !stopping_;
    };
    for (int i = 0; i < request.connections; ++i)
      rows_.emplace_back(lasting(connect_and_prepare, go_on), request.seed);
  }

  ~Play() {
    stop();
    join();
  }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  SimulationSummary run() {
    running_ = rows_.size();
    for (auto& rows : rows_)
      threads_.emplace_back([this, &rows] { work(rows); });
    bool stopped = false;
    while (!all_ended_within(pause_)) {
      stopped = signal_.requested();
      if (stopped) stop();
      release_tokens(stopped);
      tell();
    }
    join();
    if (failure_) std::rethrow_exception(failure_);
    tell();
    return summarise(stopped);
  }

 private:
  LastingConnection lasting(const Connect& connect, std::function<bool()> go_on) {
    return {connect(),
            {.connect = connect,
             .patience = request_.timeout,
             .go_on = std::move(go_on),
             .lost = [this](const std::string& reason) { note_loss(1, reason); },
             .back = [this] { note_loss(-1, {}); }}};
  }

  void note_loss(int change, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    lost_ += change;
    if (change > 0) reason_ = reason;
  }

  void tell() {
    std::unique_lock lock(mutex_);
    const SimulationProgress progress{.accounts = schedule_.total().accounts,
                                      .waiting = schedule_.waiting(),
                                      .lost = lost_,
                                      .reason = reason_};
    lock.unlock();
    report_(progress);
  }

  bool all_ended_within(Milliseconds limit) {
    std::unique_lock lock(mutex_);
    return news_.wait_for(lock, limit, [this] { return running_ == 0; });
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    news_.notify_all();
  }

  void join() {
    for (auto& thread : threads_)
      thread.join();
    threads_.clear();
  }

  /// Makes tokens ready whose delay has ended, or that were emitted. Throws Error(failed) if none is emitted.
  void release_tokens(bool stopped) {
    std::unique_lock lock(mutex_);
    bool released = schedule_.release_due(steady_now());
    if (watch_ && !stopped && schedule_.waiting() > 0) {
      lock.unlock();
      const auto emitted = poll_emissions();
      lock.lock();
      pause_ = emitted.empty() ? std::min(pause_ * 3 / 2, longest_pause) : shortest_pause;
      if (busy_ == 0) schedule_.forget_emissions();
      released = schedule_.add_emissions(emitted) || released;
    }
    if (released) news_.notify_all();
    if (released || schedule_.waiting() == 0) last_release_ = steady_now();
    if (stopped || request_.delay || steady_now() - last_release_ < request_.timeout) return;
    throw Error(ExitCode::failed,
                fmt::format("no collector has emitted any of the {} waiting tokens for {}",
                            with_thousands(schedule_.waiting()), format_duration(request_.timeout)),
                "start a collector, as a service or into a file, or use --delay to run without one");
  }

  std::vector<IdRange> poll_emissions() {
    try {
      return watch_->poll();
    } catch (const ConnectionLost&) {
      if (!signal_.requested()) throw;
      return {};
    }
  }

  void work(SimulatedRows& rows) noexcept {
    std::exception_ptr failure;
    try {
      play(rows);
    } catch (const ConnectionLost&) {
      // A connection that is lost while stopping is no failure.
      const std::lock_guard lock(mutex_);
      if (!stopping_) failure = std::current_exception();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) stop();
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
    --running_;
    news_.notify_all();
  }

  void play(SimulatedRows& rows) {
    std::optional<Deal> deal;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (!deal) deal = schedule_.next_deal();
      const bool has_room = deal && schedule_.waiting() <= max_waiting;
      if (const auto tokens = schedule_.take_ready(); !tokens.empty()) {
        unlocked(lock, [&](std::size_t seen) { consume(rows, tokens, seen); });
      } else if (has_room && deal->due <= steady_now()) {
        unlocked(lock, [&](std::size_t seen) { create(rows, *deal, seen); });
        deal.reset();
      } else if (is_over()) {
        const auto accounts = schedule_.take_to_suspend();
        if (accounts.empty()) return;
        unlocked(lock, [&](std::size_t) { suspend(rows, accounts); });
      } else if (has_room) {
        news_.wait_until(lock, deal->due);
      } else {
        news_.wait(lock);
      }
    }
  }

  /// True once no token can come any more; then suspensions follow.
  bool is_over() {
    if (!over_ && busy_ == 0 && schedule_.is_over()) {
      over_ = true;
      news_.notify_all();
    }
    return over_;
  }

  /// Calls `job` without the lock, with the number of emissions known before.
  template <typename Job>
  void unlocked(std::unique_lock<std::mutex>& lock, const Job& job) {
    ++busy_;
    const auto seen = schedule_.emissions();
    lock.unlock();
    job(seen);
    lock.lock();
    --busy_;
  }

  template <typename Write>
  auto timed(const Write& write) {
    const auto start = steady_now();
    auto result = write();
    const auto latency = std::chrono::duration_cast<std::chrono::microseconds>(steady_now() - start);
    const std::lock_guard lock(mutex_);
    schedule_.total().latency.add(latency);
    return result;
  }

  void create(SimulatedRows& rows, const Deal& deal, std::size_t seen) {
    const auto accounts =
        timed([&] { return rows.create(deal.first, deal.first + std::ssize(deal.plans) - 1); });
    std::unique_lock lock(mutex_);
    schedule_.total().last_creation = steady_now();
    const auto activating = schedule_.add_accounts(deal, accounts);
    lock.unlock();
    if (activating.empty()) return;
    const auto issued = rows.activation_tokens(activating);
    lock.lock();
    schedule_.add_tokens(issued, false, seen, steady_now());
  }

  void consume(SimulatedRows& rows, const std::vector<SimulatedToken>& tokens, std::size_t seen) {
    std::vector<std::int64_t> ids;
    for (const auto& token : tokens)
      ids.push_back(token.id);
    const auto consumed = timed([&] { return rows.consume(ids); });
    std::unique_lock lock(mutex_);
    const auto recovering = schedule_.finish(tokens, consumed);
    lock.unlock();
    if (recovering.empty()) return;
    const auto issued = timed([&] { return rows.recover(recovering); });
    lock.lock();
    schedule_.add_tokens(issued, true, seen, steady_now());
  }

  void suspend(SimulatedRows& rows, const std::vector<std::int64_t>& accounts) {
    const auto count = timed([&] { return rows.suspend(accounts); });
    const std::lock_guard lock(mutex_);
    schedule_.total().suspended += count;
  }

  SimulationSummary summarise(bool stopped) {
    SimulationSummary summary{.total = schedule_.total(), .stopped = stopped};
    const auto since_start = [&](TimePoint to) { return std::chrono::duration<double>(to - start_).count(); };
    summary.seconds = since_start(steady_now());
    if (const auto creating = since_start(summary.total.last_creation); creating > 0)
      summary.accounts_per_second = static_cast<double>(summary.total.accounts) / creating;
    return summary;
  }

  const SimulationRequest& request_;
  const StopSignal& signal_;
  const Report& report_;
  const TimePoint start_ = steady_now();
  TimePoint last_release_ = start_;
  Milliseconds pause_ = shortest_pause;
  std::optional<LastingConnection> watched_;
  std::optional<EmissionWatch> watch_;
  std::list<SimulatedRows> rows_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  ///< of all below
  std::condition_variable news_;
  SimulationSchedule schedule_;
  std::size_t running_ = 0;
  std::size_t busy_ = 0;  ///< threads that write rows
  bool stopping_ = false;
  bool over_ = false;
  std::exception_ptr failure_;
  int lost_ = 0;
  std::string reason_;
};

}  // namespace

SimulationSummary simulate(const SimulationRequest& request,
                           const std::function<std::unique_ptr<Connection>()>& connect,
                           const StopSignal& stop,
                           const std::function<void(const SimulationProgress&)>& report) {
  return Play(request, connect, stop, report).run();
}

}  // namespace mailroom
