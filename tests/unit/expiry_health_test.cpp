// Tokens that expired unsent, and a forecast of those that will: by backlog, rate and life.

#include "health/queue_health.hpp"
#include "support/catch.hpp"

namespace mailroom::test::expiry_health_test {
namespace {

using namespace std::chrono_literals;

constexpr Moment noon(1'800'000'000s);

/// A queue with a collector, and tokens that have waited for `age`.
status::QueueStatus waiting(std::map<std::int64_t, double> by_life, std::chrono::seconds age = 1s) {
  status::QueueStatus status;
  status.queue = "mailroom";
  status.now = noon;
  status.collectors.emplace_back();
  for (const auto& [life, tokens] : by_life)
    status.pending.waiting += static_cast<std::int64_t>(tokens);
  status.pending.waiting_by_life = std::move(by_life);
  status.pending.oldest_created_at = noon - age;
  return status;
}

void set_rate(status::QueueStatus& status, int per_minute) {
  status.record.budgets = {{.name = "mailroom", .paced = {{per_minute, 60'000ms}, 1}, .ahead = 1h}};
}

/// So many tokens in each 10 seconds of the last five minutes.
void set_emissions(status::QueueStatus& status, std::int64_t tokens) {
  status.emissions.known = 5min;
  status.emissions.tokens.assign(status::RecentEmissions::bucket_count, tokens);
}

std::string problems_of(const status::QueueStatus& status) {
  std::string text;
  for (const auto& finding : health::judge_expiry(status))
    text += (finding.severity == health::Severity::failure ? "failure " : "warning ") + finding.code + "; ";
  return text;
}

}  // namespace

TEST_CASE("tokens that expired unsent are a failure for ten minutes, and news for an hour") {
  auto status = waiting({});
  CHECK(problems_of(status).empty());
  status.expired.add(3, 9min);
  CHECK(problems_of(status) == "failure expired_unsent; ");
  CHECK(health::judge_expiry(status).front().text ==
        "3 tokens expired unsent within the last hour, the last 9m ago: they were not accepted in time");
  status.expired = {};
  status.expired.add(3, 10min);
  CHECK(problems_of(status) == "warning expired_unsent; ");
  status.expired.add(1, 2min);
  CHECK(status.expired.tokens == 4);
  CHECK(problems_of(status) == "failure expired_unsent; ");
  status.collectors.clear();
  CHECK(health::judge_expiry(status).front().text.ends_with(": no collector is connected"));
  auto& relay = status.deliveries.sinks.emplace_back();
  relay.name = "relay:25";
  relay.lasts = 2min;
  status.collectors.emplace_back();
  CHECK(health::judge_expiry(status).front().text.ends_with(": relay:25 is unavailable"));
  status.record.pause.emplace().lasts = 2min;
  CHECK(health::judge_expiry(status).front().text.ends_with(": the queue is paused"));
}

TEST_CASE("what began after the last token had expired is not its cause") {
  auto status = waiting({});
  status.expired.add(3, 2min);
  const auto nothing_known = [&] {
    return health::judge_expiry(status).front().text.ends_with(": they were not accepted in time");
  };
  status.record.pause.emplace().lasts = 1min;
  CHECK(nothing_known());
  status.record.pause.reset();
  auto& relay = status.deliveries.sinks.emplace_back();
  relay.lasts = 1min;
  CHECK(nothing_known());
  status.deliveries.sinks.clear();
  status.collectors.clear();
  status.last_claim = status::LastClaim{.claimed_by = "mailroom send@web1:77", .age = 1min};
  CHECK(nothing_known());
  status.last_claim->age = 3min;
  CHECK_FALSE(nothing_known());
}

TEST_CASE("the hint selects the oldest token that expired unsent") {
  for (const auto& [created, since] : std::vector<std::pair<Milliseconds, std::string>>{
           {0s, "2h"}, {1h, "2h"}, {2h, "3h"}, {47h, "48h"}, {48h, "3d"}, {21 * 24h, "22d"}}) {
    auto status = waiting({});
    status.expired.add(1, 1min, 30s);
    status.expired.add(1, 2min, created);
    INFO(since);
    CHECK(health::judge_expiry(status).front().hint.find("--since " + since + " ") != std::string::npos);
  }
}

TEST_CASE("the forecast compares those that must go within some time with what the rate allows in it") {
  struct Case {
    std::map<std::int64_t, double> by_life;
    int per_minute;
    std::int64_t expiring;
  };
  for (const auto& [by_life, per_minute, expiring] : std::vector<Case>{
           {{{900, 900}}, 60, 0},
           {{{900, 901}}, 60, 1},
           {{{900, 49'120}}, 600, 40'120},
           // The old burst is late, although there is time for all.
           {{{300, 1000}, {900, 10}}, 120, 400},
           // The first leave room for the later ones.
           {{{300, 100}, {900, 700}}, 60, 0},
           {{{30, 40}, {300, 200}, {900, 1000}}, 60, 340},
       }) {
    CAPTURE(per_minute, expiring);
    auto status = waiting(by_life);
    set_rate(status, per_minute);
    CHECK(health::forecast_expiring(status) == expiring);
    CHECK(problems_of(status) == (expiring > 0 ? "failure will_expire; " : ""));
  }
}

TEST_CASE("a measured rate counts once tokens have waited for 20 s, and if it is lower than the own") {
  auto status = waiting({{900, 1000}}, 19s);
  set_emissions(status, 5);
  CHECK_FALSE(health::forecast_expiring(status));
  status.pending.oldest_created_at = noon - 20s;
  CHECK(health::forecast_expiring(status) == 550);
  CHECK(
      health::judge_expiry(status).front().text ==
      "at least 550 of 1,000 tokens that wait will expire before they are mailed: the 0.5/s of the last 10s "
      "would take 33m20s, and the longest of them lives for 15m");
  CHECK(
      health::judge_expiry(status).front().hint ==
      "another instance of the service shares the work. For those that expire: mailroom resend --outcome expired --since 2h "
      "--extend 15m --dry-run shows who would be mailed");
  status.collectors.front().session.application = "mailroom send@web1:77";
  CHECK(health::judge_expiry(status).front().hint.starts_with(
      "raise send.connections if the relay takes more, then systemctl reload 'mailroom-send@*', or kill -HUP 77 on web1 "
      "without systemd; "));
  health::HealthLimits limits;
  limits.send_connections = 4;
  CHECK(health::judge_expiry(status, limits)
            .front()
            .hint.starts_with("raise send.connections, 4 in the configuration here, if "));
  status.pending.oldest_created_at = noon - 80s;
  CHECK(health::judge_expiry(status).front().text.find("the 0.5/s of the last 1m would") !=
        std::string::npos);
  set_rate(status, 60);
  CHECK(health::forecast_expiring(status) == 550);
  set_rate(status, 6);
  CHECK(health::forecast_expiring(status) == 910);
  CHECK(health::judge_expiry(status).front().hint.find("mailroom queue set mailroom --rate RATE") !=
        std::string::npos);
  // One that emits nothing has another problem.
  status.record.budgets.clear();
  set_emissions(status, 0);
  CHECK_FALSE(health::forecast_expiring(status));
  set_emissions(status, 5);
  status.emissions.known = 19s;
  set_rate(status, 6);
  CHECK(health::forecast_expiring(status) == 910);
  status.collectors.clear();
  CHECK_FALSE(health::forecast_expiring(status));
}

TEST_CASE("a consumer that has only begun is measured since then, and one that stopped since it did") {
  auto status = waiting({{120, 1000}}, 10min);
  set_emissions(status, 0);
  status.emissions.tokens[0] = 7;
  CHECK_FALSE(health::forecast_expiring(status));
  status.emissions.tokens[1] = 40;
  CHECK(health::forecast_expiring(status) == 520);
  status.emissions.tokens[1] = 0;
  status.emissions.tokens[2] = 40;
  CHECK(health::forecast_expiring(status) == 760);
}

}  // namespace mailroom::test::expiry_health_test
