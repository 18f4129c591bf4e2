// prometheus-cpp writes no OpenMetrics. A counter's family has the name without `_total`, and the page ends
// with `# EOF`.

#include <cmath>
#include <fmt/format.h>

#include "base/encoded_text.hpp"
#include "base/text.hpp"
#include "metrics/metric_families.hpp"

namespace mailroom::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view total_suffix = "_total";

std::string number_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", number);
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
}

/// `{queue="mailroom",le="1"}`; `bound` is empty for none.
std::string labels_text(const ClientMetric& metric, const std::string& bound = {}) {
  std::string out;
  const auto add = [&](const std::string& name, std::string_view value) {
    out += (out.empty() ? "{" : ",") + name + "=\"";
    append_escaped(out, value);
    out += '"';
  };
  for (const auto& label : metric.label)
    add(label.name, label.value);
  if (!bound.empty()) add("le", bound);
  return out.empty() ? out : out + "}";
}

void append_exemplar(std::string& out, const Exemplar& exemplar) {
  const auto seconds = std::chrono::duration<double>(exemplar.at.time_since_epoch()).count();
  append_format(out, " # {{trace_id=\"{}\"}} {} {:.3f}", hex_text(exemplar.trace),
                number_text(exemplar.value), seconds);
}

void append_histogram(std::string& out, const std::string& name, const ClientMetric& metric,
                      const BucketExemplars& exemplars) {
  const auto& histogram = metric.histogram;
  std::size_t place = 0;
  for (const auto& bucket : histogram.bucket) {
    append_format(out, "{}_bucket{} {}", name, labels_text(metric, number_text(bucket.upper_bound)),
                  bucket.cumulative_count);
    if (const auto found = exemplars.find(place); found != exemplars.end())
      append_exemplar(out, found->second);
    out += '\n';
    ++place;
  }
  append_format(out, "{0}_count{1} {2}\n{0}_sum{1} {3}\n", name, labels_text(metric), histogram.sample_count,
                number_text(histogram.sample_sum));
}

const char* type_text(MetricType type) {
  if (type == MetricType::Counter) return "counter";
  if (type == MetricType::Gauge) return "gauge";
  return type == MetricType::Histogram ? "histogram" : "unknown";
}

}  // namespace

std::string openmetrics_text(const std::vector<MetricFamily>& families, const Exemplars& exemplars) {
  std::string out;
  for (const auto& family : families) {
    auto name = family.name;
    const bool is_counter = family.type == MetricType::Counter;
    if (is_counter && name.ends_with(total_suffix)) name.resize(name.size() - total_suffix.size());
    out += "# HELP " + name + " ";
    append_escaped(out, family.help);
    out += "\n# TYPE " + name + " " + type_text(family.type) + "\n";
    for (const auto& metric : family.metric) {
      if (family.type == MetricType::Histogram) {
        const auto label = metric.label.empty() ? std::string() : metric.label.front().value;
        append_histogram(out, name, metric, exemplars.of(name, label));
      } else {
        const double value = is_counter ? metric.counter.value : metric.gauge.value;
        out += name + (is_counter ? std::string(total_suffix) : std::string()) + labels_text(metric) + " " +
               number_text(value) + "\n";
      }
    }
  }
  return out + "# EOF\n";
}

}  // namespace mailroom::metrics
