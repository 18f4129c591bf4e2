// Groups values by name in the order of first use, and makes foreign text in labels printable.

#include "metrics/metric_families.hpp"

#include <prometheus/text_serializer.h>
#include <sstream>

#include "base/printable.hpp"

namespace mailroom::metrics {

namespace {

prometheus::ClientMetric labelled_metric(const MetricLabels& labels) {
  prometheus::ClientMetric metric;
  // Names of users and programs are foreign text.
  for (const auto& [label, text] : labels)
    metric.label.push_back({label, shown_text(text)});
  return metric;
}

}  // namespace

prometheus::MetricFamily& MetricFamilies::family(const std::string& name, const std::string& help,
                                                 prometheus::MetricType type) {
  const auto [place, is_new] = places_.emplace(name, families_.size());
  if (is_new) families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
  return families_[place->second];
}

void MetricFamilies::gauge(const std::string& name, const std::string& help) {
  family(name, help, prometheus::MetricType::Gauge);
}

void MetricFamilies::gauge(const std::string& name, const std::string& help, const MetricLabels& labels,
                           double value) {
  auto metric = labelled_metric(labels);
  metric.gauge.value = value;
  family(name, help, prometheus::MetricType::Gauge).metric.push_back(std::move(metric));
}

void MetricFamilies::counter(const std::string& name, const std::string& help, const MetricLabels& labels,
                             double value) {
  auto metric = labelled_metric(labels);
  metric.counter.value = value;
  family(name, help, prometheus::MetricType::Counter).metric.push_back(std::move(metric));
}

std::string exposition_text(const std::vector<prometheus::MetricFamily>& families) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return std::move(text).str();
}

}  // namespace mailroom::metrics
