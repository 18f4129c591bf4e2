// One session in turn creates accounts and acts for those whose tokens were emitted.

#include "simulation/simulation.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/wording.hpp"
#include "simulation/emission_watch.hpp"

namespace mailroom::simulation {
namespace {

constexpr Milliseconds longest_sleep{20};
constexpr Milliseconds between_polls{100};

class Play {
 public:
  Play(db::Connection& connection, const SimulationRequest& request, process::StopSignal& stop,
       const std::function<void(const SimulationTally&)>& report)
      : request_(request), stop_(stop), report_(report), rows_(connection, request.seed) {
    if (request.shares.activate > 0) watch_.emplace(connection);
  }

  SimulationTally run() {
    const auto start = steady_now();
    write_rows(request_.accounts, tally_.accounts, [this](std::int64_t first, std::int64_t last) {
      rows_.create_accounts(first, last);
      tally_.waiting +=
          selected_of(last, request_.shares.activate) - selected_of(first - 1, request_.shares.activate);
      last_news_ = steady_now();
    });
    while (tally_.waiting > 0 && !stop_.requested()) {
      pause(longest_sleep);
      act();
      if (steady_now() > last_news_ + request_.timeout) give_up();
    }
    write_rows(request_.messages, tally_.messages,
               [this](std::int64_t first, std::int64_t last) { rows_.send_messages(first, last); });
    tally_.seconds = std::chrono::duration<double>(steady_now() - start).count();
    return tally_;
  }

 private:
  /// Calls `write` for steps of `count` rows when they are due, and acts for people meanwhile.
  template <typename Write>
  void write_rows(std::int64_t count, std::int64_t& written, const Write& write) {
    const auto start = steady_now();
    while (written < count && !stop_.requested()) {
      act();
      const auto first = written + 1;
      const auto left =
          request_.rate ? due_at(start, first, *request_.rate) - steady_now() : TimePoint::duration::zero();
      if (left > TimePoint::duration::zero()) {
        pause(std::min(std::chrono::ceil<Milliseconds>(left), longest_sleep));
        continue;
      }
      const auto last = request_.rate ? first : std::min(count, first + simulation_step - 1);
      write(first, last);
      written = last;
      report_(tally_);
    }
  }

  void pause(Milliseconds duration) {
    report_(tally_);
    stop_.sleep_for(duration);
  }

  /// Has people take the tokens that were emitted since the last poll.
  void act() {
    if (!watch_ || steady_now() < next_poll_) return;
    next_poll_ = steady_now() + between_polls;
    const auto emitted = watch_->poll();
    if (emitted.empty()) return;
    const auto used = rows_.use(emitted, request_.shares);
    tally_.used.activated += used.activated;
    tally_.used.recovered += used.recovered;
    tally_.used.expired += used.expired;
    tally_.used.asked += used.asked;
    const auto taken = used.activated + used.recovered + used.expired;
    tally_.waiting += used.asked - taken;
    if (taken > 0) last_news_ = steady_now();
  }

  [[noreturn]] void give_up() const {
    throw Error(ExitCode::failed,
                fmt::format("no collector has emitted any of the {} waiting tokens for {}",
                            with_thousands(tally_.waiting), format_duration(request_.timeout)),
                "start a collector, as a service or into a file, or simulate without --activate");
  }

  const SimulationRequest& request_;
  process::StopSignal& stop_;
  const std::function<void(const SimulationTally&)>& report_;
  SimulatedRows rows_;
  std::optional<EmissionWatch> watch_;
  SimulationTally tally_;
  TimePoint next_poll_;
  TimePoint last_news_;
};

}  // namespace

TimePoint due_at(TimePoint start, std::int64_t n, double rate) {
  // A century is longer than any run, and far from the end of the clock's range.
  constexpr double century = 100.0 * 365 * 24 * 3600;
  const std::chrono::duration<double> offset(std::min(static_cast<double>(n - 1) / rate, century));
  return start + std::chrono::duration_cast<TimePoint::duration>(offset);
}

SimulationTally simulate(db::Connection& connection, const SimulationRequest& request,
                         process::StopSignal& stop,
                         const std::function<void(const SimulationTally&)>& report) {
  return Play(connection, request, stop, report).run();
}

}  // namespace mailroom::simulation
