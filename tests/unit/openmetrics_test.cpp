// Metrics with exemplars.

#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "metrics/metric_families.hpp"
#include "support/catch.hpp"

namespace mailroom::test::openmetrics_test {

TEST_CASE("a bucket with an exemplar names its trace, and the others do not") {
  prometheus::Registry registry;
  auto& family = prometheus::BuildHistogram().Name("seconds").Help("Time.").Register(registry);
  auto& histogram = family.Add({{"sink", "relay:25"}}, prometheus::Histogram::BucketBoundaries{0.1, 1});
  histogram.Observe(0.05);
  histogram.Observe(1);
  histogram.Observe(7);
  metrics::Exemplars exemplars;
  const trace::TraceId trace{0xab, 1};
  const WallTime at{Milliseconds(1'800'000'000'500)};
  exemplars.note("seconds", "relay:25", {0.1, 1}, {.trace = trace, .value = 1, .at = at});
  exemplars.note("seconds", "relay:25", {0.1, 1}, {.trace = trace, .value = 7, .at = at});
  exemplars.note("seconds", "other:25", {0.1, 1}, {.trace = trace, .value = 0.01, .at = at});
  const auto named = R"( # {trace_id="ab010000000000000000000000000000"} )";
  CHECK(metrics::openmetrics_text(registry.Collect(), exemplars) ==
        std::string("# HELP seconds Time.\n# TYPE seconds histogram\n"
                    "seconds_bucket{sink=\"relay:25\",le=\"0.1\"} 1\n"
                    "seconds_bucket{sink=\"relay:25\",le=\"1\"} 2") +
            named +
            "1 1800000000.500\n"
            "seconds_bucket{sink=\"relay:25\",le=\"+Inf\"} 3" +
            named +
            "7 1800000000.500\n"
            "seconds_count{sink=\"relay:25\"} 3\nseconds_sum{sink=\"relay:25\"} 8.05\n# EOF\n");
}

TEST_CASE("the family of a counter has no _total, and labels are escaped") {
  metrics::MetricFamilies metrics;
  metrics.counter("a_total", "Some\ntext.", {{"name", "x\"y\\z"}}, 3);
  metrics.gauge("b", "Other.", {}, 0.5);
  CHECK(metrics::openmetrics_text(metrics.all(), {}) ==
        "# HELP a Some\\ntext.\n# TYPE a counter\na_total{name=\"x\\\"y\\\\z\"} 3\n"
        "# HELP b Other.\n# TYPE b gauge\nb 0.5\n# EOF\n");
}

}  // namespace mailroom::test::openmetrics_test
