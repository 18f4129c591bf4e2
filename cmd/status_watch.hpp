#pragma once

#include <deque>

#include "cmd/context.hpp"
#include "cmd/status_report.hpp"

namespace mailroom {

/// The lags of the last looks.
class LagHistory {
 public:
  /// `at` in milliseconds since 1970, of the server. A look counts until the next, but no longer than
  /// `lasts`.
  explicit LagHistory(Milliseconds lasts) : lasts_(lasts) {}

  void add(std::int64_t at, Milliseconds lag);
  /// The longest lag, in seconds, in each tenth of a minute of the five minutes before `now`; oldest first.
  std::vector<std::optional<double>> trend(std::int64_t now) const;

 private:
  struct Look {
    std::int64_t at;
    Milliseconds lag;
  };

  Milliseconds lasts_;
  std::deque<Look> looks_;
};

/// What is looked at, and from when on it is a finding.
struct StatusRequest {
  std::string queue;
  HealthLimits limits;
};

/// One look.
StatusReport look_at_queue(Connection& connection, const StatusRequest& request);

/// Looks every `interval` until SIGINT or SIGTERM; then done. Redraws on a terminal, and writes a line a look
/// elsewhere. Connects again by itself, and says while it cannot that there is no answer. Done, too, when
/// nobody reads any more.
ExitCode watch_status(const StatusRequest& request, Milliseconds interval, Context& context);

}  // namespace mailroom
