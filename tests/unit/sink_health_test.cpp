// Which states of relays and deliveries are problems.

#include "status/queue_health.hpp"
#include "support/catch.hpp"

namespace mailroom::test::sink_health_test {
namespace {

std::string problems_of(const DeliveryStatus& deliveries) {
  std::string text;
  for (const auto& finding : judge_sinks(deliveries))
    text += (finding.severity == Severity::failure ? "failure " : "warning ") + finding.code + "; ";
  return text;
}

std::string problems_with(const std::string& reason) {
  DeliveryStatus deliveries;
  UnavailableSink& sink = deliveries.sinks.emplace_back();
  sink.name = "relay:25";
  sink.failures = 2;
  sink.reason = reason;
  return problems_of(deliveries);
}

std::string problems_after(std::vector<std::pair<std::string, std::int64_t>> last_hour) {
  DeliveryStatus deliveries;
  deliveries.last_hour = std::move(last_hour);
  return problems_of(deliveries);
}

}  // namespace

TEST_CASE("a relay that refuses for good is a failure, one that is down or busy a warning") {
  CHECK(problems_of({}).empty());
  CHECK(problems_with("553 5.7.1 Sender address rejected") == "failure sink_unavailable; ");
  CHECK(problems_with("535 authentication failed") == "failure sink_unavailable; ");
  for (const std::string reason :
       {"421 4.3.2 closing", "connection lost after EHLO", "5 tries", "5.7.1 no", "55", ""})
    CHECK(problems_with(reason) == "warning sink_unavailable; ");
}

TEST_CASE("rejections without a success are a warning") {
  CHECK(problems_after({{"rejected", 3}}) == "warning only_rejections; ");
  CHECK(problems_after({{"deferred", 9}, {"rejected", 3}}) == "warning only_rejections; ");
  CHECK(problems_after({{"rejected", 2}}).empty());
  CHECK(problems_after({{"rejected", 300}, {"accepted", 1}}).empty());
}

}  // namespace mailroom::test::sink_health_test
