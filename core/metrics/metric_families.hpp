// Collects values under names and labels, and writes them as Prometheus reads them.
#pragma once

#include <map>
#include <prometheus/metric_family.h>
#include <string>
#include <utility>
#include <vector>

#include "metrics/exemplars.hpp"

namespace mailroom::metrics {

/// Labels with their values, in the order in which they are shown.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

/// Families of metrics, in the order in which they are named first.
class MetricFamilies {
 public:
  /// Adds a value to the family `name`, which has this meaning.
  void gauge(const std::string& name, const std::string& help, const MetricLabels& labels, double value);
  /// The same for a family of counters.
  void counter(const std::string& name, const std::string& help, const MetricLabels& labels, double value);
  /// Adds the family without a value, so that it is not missing.
  void gauge(const std::string& name, const std::string& help);

  const std::vector<prometheus::MetricFamily>& all() const { return families_; }

 private:
  prometheus::MetricFamily& family(const std::string& name, const std::string& help,
                                   prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> families_;
  std::map<std::string, std::size_t> places_;
};

constexpr const char* exposition_type = "text/plain; version=0.0.4; charset=utf-8";

/// In Prometheus' text format 0.0.4.
std::string exposition_text(const std::vector<prometheus::MetricFamily>& families);

constexpr const char* openmetrics_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `families` in OpenMetrics' text format 1.0.0. Each bucket of a histogram that has an exemplar names its
/// trace.
std::string openmetrics_text(const std::vector<prometheus::MetricFamily>& families,
                             const Exemplars& exemplars);

}  // namespace mailroom::metrics
