// Puts the page /metrics together, and decides when a consumer counts as healthy and as ready.

#include "metrics/metrics_endpoint.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "metrics/database_metrics.hpp"
#include "metrics/metric_families.hpp"
#include "metrics/process_metrics.hpp"

namespace mailroom::metrics {
namespace {

using Seconds = std::chrono::duration<double>;

void append(std::vector<prometheus::MetricFamily>& families, const MetricFamilies& more) {
  families.insert(families.end(), more.all().begin(), more.all().end());
}

MetricFamilies span_metrics(const trace::SpanCounts& counts) {
  MetricFamilies metrics;
  const auto add = [&](const char* result, std::uint64_t spans) {
    metrics.counter("mailroom_trace_spans_total", "Spans by what became of them: sent, dropped or refused.",
                    {{"result", result}}, static_cast<double>(spans));
  };
  add("sent", counts.sent);
  add("dropped", counts.dropped);
  add("refused", counts.refused);
  return metrics;
}

}  // namespace

MetricsEndpoint::MetricsEndpoint(const config::ListenAddress& address,
                                 const ConsumerMetrics::Options& options, DatabaseReader::Source source,
                                 Log& log, std::function<trace::SpanCounts()> spans)
    : started_(wall_now()),
      loop_(steady_now()),
      consumer_(options),
      database_(std::move(source), log),
      spans_(std::move(spans)),
      server_(address, [this](const process::HttpCall& call) { return page(call); }) {}

void MetricsEndpoint::observe(consumer::ConsumerObservers& observers) {
  observers.add(loop_);
  observers.add(consumer_);
}

process::HttpPage MetricsEndpoint::page(const process::HttpCall& call) {
  const auto& path = call.path;
  if (path == "/metrics")
    return metrics_page(spans_ &&
                        call.header("accept").find("application/openmetrics-text") != std::string_view::npos);
  if (path == "/healthz") return health_page();
  if (path == "/readyz") return readiness_page();
  return {.status = 404, .text = "there are /metrics, /healthz and /readyz\n"};
}

process::HttpPage MetricsEndpoint::metrics_page(bool has_exemplars) {
  const auto reading = database_.latest(database_patience);
  auto families = consumer_.collect();
  MetricFamilies of_loop;
  of_loop.gauge("mailroom_loop_overdue_seconds",
                "How long the loop has neither turned nor waited as it should; 0 if it works.", {},
                Seconds(loop_.overdue(steady_now())).count());
  append(families, of_loop);
  append(families, process_metrics(started_));
  if (spans_) append(families, span_metrics(spans_()));
  // A database that does not answer in time is down.
  append(families, database_metrics(reading ? *reading : DatabaseReading{.error = "no answer in time"}));
  if (has_exemplars)
    return {.text = openmetrics_text(families, consumer_.exemplars()), .type = openmetrics_type};
  return {.text = exposition_text(families), .type = exposition_type};
}

process::HttpPage MetricsEndpoint::health_page() const {
  const auto overdue = loop_.overdue(steady_now());
  if (overdue < longest_turn) return {.text = "ok\n"};
  return {.status = 503,
          .text = fmt::format("the loop has not turned for {}\n",
                              format_duration(std::chrono::floor<std::chrono::seconds>(overdue)))};
}

process::HttpPage MetricsEndpoint::readiness_page() const {
  if (consumer_.is_connected()) return {.text = "ok\n"};
  return {.status = 503, .text = "there is no session with the database\n"};
}

}  // namespace mailroom::metrics
