// status --watch: a report every few seconds, with trends and through outages.
#pragma once

#include <deque>

#include "cmd/status/status_report.hpp"
#include "cmd/terminal/context.hpp"

namespace mailroom::cmd {

/// The lags of the latest reports.
class LagHistory {
 public:
  /// A sample counts until the next one, but no longer than `lasts`.
  explicit LagHistory(Milliseconds lasts) : lasts_(lasts) {}

  /// `at` is the server's time.
  void add(Moment at, Milliseconds lag);
  /// The longest lag in seconds, in each 10 seconds of the five minutes before `now`; oldest first.
  std::vector<std::optional<double>> trend(Moment now) const;

 private:
  struct Sample {
    Moment at;
    Milliseconds lag;
  };

  Milliseconds lasts_;
  std::deque<Sample> samples_;
};

/// Which queues to report on, the limits beyond which a value is a finding, and how to print them.
struct StatusRequest {
  const config::Settings& settings;  ///< see shown_queues()
  health::HealthLimits limits;
  bool json = false;
};

/// Reads one report on each queue. Throws Error(locked) if a table is locked, and DatabaseError MR001 if a
/// queue that collect.queue names is unknown.
StatusOverview read_overview(db::Connection& connection, const StatusRequest& request);

/// Reports every `interval` until SIGINT or SIGTERM: redraws a terminal, and writes one line per report
/// elsewhere. Reconnects by itself, and reports the outage meanwhile. Returns ExitCode::done, also when the
/// reader closes the output.
ExitCode watch_status(const StatusRequest& request, Milliseconds interval, Context& context);

}  // namespace mailroom::cmd
