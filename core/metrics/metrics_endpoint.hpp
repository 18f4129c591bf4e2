// Joins the metrics, the state of the loop and the HTTP server of a consumer.
#pragma once

#include <functional>
#include <string>

#include "base/log.hpp"
#include "consumer/consumer_observer.hpp"
#include "metrics/consumer_metrics.hpp"
#include "metrics/database_reader.hpp"
#include "metrics/http_server.hpp"
#include "trace/span_buffer.hpp"

namespace mailroom::metrics {

/// What a consumer shows of itself over HTTP:
///
///     /metrics   its metrics and those of the database, for Prometheus
///     /healthz   200 while the loop turns, otherwise 503
///     /readyz    200 while there is a session, which implies that the schema fits, otherwise 503
class MetricsEndpoint {
 public:
  /// How long the loop may be overdue.
  static constexpr std::chrono::seconds longest_turn{60};
  /// How long a page waits for the database.
  static constexpr Milliseconds database_patience{3000};

  /// Throws as HttpServer(). `log` must outlive this.
  /// `spans`: what became of them; may be empty without traces. With it pages have exemplars, for whoever
  /// asks for OpenMetrics.
  MetricsEndpoint(const config::ListenAddress& address, const ConsumerMetrics::Options& options,
                  DatabaseReader::Source source, Log& log, std::function<trace::SpanCounts()> spans = {});

  void observe(consumer::ConsumerObservers& observers);
  /// Takes effect with the next reading of the database.
  void configure(DatabaseReader::Source source) { database_.configure(std::move(source)); }
  const config::ListenAddress& address() const { return server_.address(); }

 private:
  process::HttpPage page(const process::HttpCall& call);
  process::HttpPage metrics_page(bool has_exemplars);
  process::HttpPage health_page() const;
  process::HttpPage readiness_page() const;

  WallTime started_;
  consumer::LoopState loop_;
  ConsumerMetrics consumer_;
  DatabaseReader database_;
  std::function<trace::SpanCounts()> spans_;
  HttpServer server_;
};

}  // namespace mailroom::metrics
