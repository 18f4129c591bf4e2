// Which states of relays and deliveries are problems.

#include "health/queue_health.hpp"
#include "support/catch.hpp"

namespace mailroom::test::sink_health_test {
namespace {

std::string problems_of(const status::DeliveryStatus& deliveries, bool has_tokens = true) {
  std::string text;
  for (const auto& finding : health::judge_sinks(deliveries, has_tokens))
    text += (finding.severity == health::Severity::failure ? "failure " : "warning ") + finding.code + "; ";
  return text;
}

std::string problems_with(const std::string& reason, std::chrono::seconds lasts = {},
                          bool has_tokens = true) {
  status::DeliveryStatus deliveries;
  status::UnavailableSink& sink = deliveries.sinks.emplace_back();
  sink.name = "relay:25";
  sink.failures = 2;
  sink.reason = reason;
  sink.lasts = lasts;
  return problems_of(deliveries, has_tokens);
}

std::string problems_after(std::int64_t refused, std::chrono::seconds lasts, std::int64_t deferred = 0) {
  status::DeliveryStatus deliveries;
  deliveries.refused = {.tokens = refused, .deferred = deferred, .lasts = lasts, .last = "451 4.3.0 later"};
  return problems_of(deliveries);
}

}  // namespace

TEST_CASE("a relay that refuses for good is a failure, one that is down or busy a warning for a minute") {
  using namespace std::chrono_literals;
  CHECK(problems_of({}).empty());
  CHECK(problems_with("553 5.7.1 Sender address rejected") == "failure sink_unavailable; ");
  CHECK(problems_with("535 authentication failed") == "failure sink_unavailable; ");
  for (const std::string reason :
       {"421 4.3.2 closing", "connection lost after EHLO", "5 tries", "5.7.1 no", "55", ""}) {
    CHECK(problems_with(reason, 59s) == "warning sink_unavailable; ");
    CHECK(problems_with(reason, 60s) == "failure sink_unavailable; ");
    CHECK(problems_with(reason, 1h, false) == "warning sink_unavailable; ");
  }
}

TEST_CASE(
    "a twentieth that is rejected while others are taken is a warning that names actions and the last words") {
  status::DeliveryStatus deliveries;
  const auto with = [&](std::int64_t accepted, std::int64_t rejected) {
    deliveries.last_hour = {{fate::Outcome::accepted, accepted}};
    deliveries.rejected = {
        .mails = rejected, .actions = "9 of import, 1 of message", .last = "550 5.1.1 no such user"};
    return problems_of(deliveries);
  };
  CHECK(with(190, 10) == "warning many_rejections; ");
  CHECK(with(191, 10).empty());
  // Fewer are single mistakes; where nothing is accepted, another rule holds.
  CHECK(with(9, 9).empty());
  CHECK(with(0, 100).empty());
  with(88, 12);
  const auto found = health::judge_sinks(deliveries, true);
  REQUIRE(found.size() == 1);
  CHECK(
      found[0].text ==
      "the receiver rejected 12 mails within the last hour, 12 %, while it accepted 88: 9 of import, 1 of message. "
      "Its last answer: 550 5.1.1 no such user");
}

TEST_CASE("nothing but refusals is a warning, and many for a minute are a failure") {
  using namespace std::chrono_literals;
  CHECK(problems_after(2, 30min).empty());
  CHECK(problems_after(3, 0s) == "warning only_refusals; ");
  CHECK(problems_after(10, 59s) == "warning only_refusals; ");
  CHECK(problems_after(9, 30min) == "warning only_refusals; ");
  CHECK(problems_after(10, 60s) == "failure only_refusals; ");
}

TEST_CASE("a few wrong addresses are a warning, and a few that are put off for a minute a failure") {
  using namespace std::chrono_literals;
  CHECK(problems_after(2, 30min, 2).empty());
  CHECK(problems_after(3, 59s, 3) == "warning only_refusals; ");
  CHECK(problems_after(3, 60s, 2) == "warning only_refusals; ");
  CHECK(problems_after(3, 60s, 3) == "failure only_refusals; ");
}

TEST_CASE("many accounts in a row with the wrong status are a failure after a minute") {
  using namespace std::chrono_literals;
  const auto problems = [](std::int64_t tokens, Milliseconds lasts) {
    status::DeliveryStatus deliveries;
    deliveries.unfit = {tokens, lasts};
    return problems_of(deliveries);
  };
  CHECK(problems(9, 30min).empty());
  CHECK(problems(10, 59s) == "warning accounts_unfit; ");
  CHECK(problems(10, 60s) == "failure accounts_unfit; ");
}

TEST_CASE("a relay that is down is a failure where mails were, and a warning where others accept them") {
  using namespace std::chrono_literals;
  status::DeliveryStatus deliveries;
  deliveries.sinks = {
      {.name = "relay:25", .failures = 9, .lasts = 5min, .probe_in = {}, .reason = "refused"}};
  CHECK(problems_of(deliveries, false) == "warning sink_unavailable; ");
  deliveries.last_hour = {{fate::Outcome::expired, 3}};
  CHECK(problems_of(deliveries, false) == "failure sink_unavailable; ");
  CHECK(problems_of(deliveries) == "failure sink_unavailable; ");
  deliveries.last_accepted = 6min;
  CHECK(problems_of(deliveries) == "failure sink_unavailable; ");
  deliveries.last_accepted = 4s;
  CHECK(problems_of(deliveries) == "warning sink_unavailable; ");
  // A relay that another one has taken the place of, whatever it said.
  deliveries.sinks[0].reason = "554 5.7.1 account suspended";
  CHECK(problems_of(deliveries) == "warning sink_unavailable; ");
  deliveries.last_accepted = 6min;
  CHECK(problems_of(deliveries) == "failure sink_unavailable; ");
}

TEST_CASE("what a relay rejected before it was clear that it refuses everything is named") {
  using namespace std::chrono_literals;
  status::DeliveryStatus deliveries;
  deliveries.sinks = {
      {.name = "relay:25", .failures = 3, .lasts = 5min, .probe_in = {}, .reason = "554 5.7.1 suspended"}};
  const auto hint = [&] { return health::judge_sinks(deliveries, true).front().hint; };
  CHECK(hint() == "mailroom doctor tries it, and says more");
  deliveries.last_hour = {{fate::Outcome::rejected, 2}};
  CHECK(hint().find("mailroom resend --outcome rejected --since 2h --dry-run") != std::string::npos);
  deliveries.sinks.front().reason = "421 busy";
  CHECK(hint() == "mailroom doctor tries it, and says more");
}

TEST_CASE("mails that cannot be made are a failure for ten minutes, and news for an hour") {
  using namespace std::chrono_literals;
  status::DeliveryStatus deliveries;
  CHECK(problems_of(deliveries).empty());
  deliveries.unmade = {
      .tokens = 33, .last = 9min, .why = "receipt.txt:1: neither the data nor mailroom has {{totl}}"};
  CHECK(problems_of(deliveries) == "failure mails_not_made; ");
  CHECK(
      health::judge_sinks(deliveries, true).front().text ==
      "33 mails within the last hour could not be made, the last 9m ago, and are rejected: receipt.txt:1: neither the data "
      "nor mailroom has {{totl}}");
  deliveries.unmade.last = 10min;
  CHECK(problems_of(deliveries) == "warning mails_not_made; ");
}

TEST_CASE(
    "what a sink refuses while it takes other mails is named, and a domain that waits long is a failure") {
  using namespace std::chrono_literals;
  status::DeliveryStatus deliveries;
  deliveries.refused_parts = {{"relay:25", "from sales@shop.example", 1h, 0, "550 not verified"},
                              {"relay:25", "to big.example", 4min, 0.1, "450 slow down"}};
  CHECK(problems_of(deliveries) == "warning sender_refused; warning domain_limited; ");
  deliveries.refused_parts[1].lasts = 5min;
  CHECK(problems_of(deliveries) == "warning sender_refused; failure domain_limited; ");
  const auto found = health::judge_sinks(deliveries, true);
  CHECK(found[0].text.find("mails from sales@shop.example") != std::string::npos);
  CHECK(found[1].text.find("takes about 0.1 of them in a second. It says: 450 slow down") !=
        std::string::npos);
}

}  // namespace mailroom::test::sink_health_test
