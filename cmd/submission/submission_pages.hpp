// What `mailroom submission` shows of itself over HTTP.
#pragma once

#include <functional>
#include <string>

#include "base/clock.hpp"
#include "metrics/http_server.hpp"
#include "submission/service.hpp"

namespace mailroom::cmd {

/// The pages /metrics and /healthz, as a consumer has them: the loop turns once a second.
class SubmissionPages {
 public:
  /// How long the loop may stand still.
  static constexpr std::chrono::seconds longest_turn{60};

  SubmissionPages(const config::ListenAddress& address, std::function<submission::ServiceCounts()> counts);

  const config::ListenAddress& address() const { return server_.address(); }
  void turned() { turned_ = steady_now(); }

 private:
  process::HttpPage page(const process::HttpCall& call) const;

  std::function<submission::ServiceCounts()> counts_;
  WallTime started_;
  std::atomic<TimePoint> turned_;
  metrics::HttpServer server_;
};

/// In Prometheus' text format.
std::string submission_metrics(const submission::ServiceCounts& counts, WallTime started);

}  // namespace mailroom::cmd
