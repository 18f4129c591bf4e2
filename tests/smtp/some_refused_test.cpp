// Relays that refuse some mails with words about everyone, or about a limit; and several senders at one relay
// that takes few connections.

#include <atomic>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/test_courier.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::some_refused_test {
namespace {

using Then = RelayAnswer::Then;

CourierOptions courier_to(const TestRelay& server, int connections = 4) {
  return {.relays = {url_of(server)}, .relay = {}, .connections = connections, .seed = 1};
}

TimePoint soon() {
  return steady_now() + std::chrono::seconds(60);
}

bool is_refused(const std::string& recipient) {
  return recipient.find("0@") != std::string::npos;
}

/// A relay that answers every tenth recipient with `text`.
TestRelay::Options refusing_some(const std::string& text) {
  return {.play = [text](const RelayMoment& moment) {
    const bool refused = moment.step == RelayStep::rcpt && is_refused(moment.recipient);
    auto answer = refused ? RelayAnswer::reply(text) : RelayAnswer{};
    if (moment.step == RelayStep::rcpt) answer.delay = Milliseconds(1);
    return answer;
  }};
}

/// Mails to users 1 to `count`, each submitted again, as a queue does it, until the relay has answered it for
/// good, beside a few others in each round. Returns the last outcome of each.
std::map<int, delivery::Answer> deliver_all(Courier& courier, int count) {
  constexpr int others = 18;
  std::map<int, delivery::Answer> last;
  std::set<int> left;
  for (int i = 1; i <= count; ++i)
    left.insert(i);
  for (int round = 0; round < 60 && !left.empty(); ++round) {
    while (courier.time_to_admission())
      std::this_thread::sleep_for(Milliseconds(20));
    for (const int user : left)
      courier.submit(user, mail_to(fmt::format("user{}@mail.example", user)));
    for (int i = 0; i < others; ++i)
      courier.submit(count + 1 + i, mail_to("other1@mail.example"));
    REQUIRE(courier.wait(soon()));
    for (auto& delivered : courier.take()) {
      if (!delivered.is_final || delivered.answer.id > count) continue;
      if (delivered.answer.counts()) left.erase(static_cast<int>(delivered.answer.id));
      last[static_cast<int>(delivered.answer.id)] = std::move(delivered.answer);
    }
  }
  CHECK(left.empty());
  return last;
}

}  // namespace

TEST_CASE("an answer about everyone that few mails get is an attempt at each of them, and stops nobody") {
  for (const std::string text :
       {"550 5.1.8 Access denied, bad outbound sender", "530 5.7.1 Authentication required",
        "450 4.7.1 <app1>: Helo command rejected: Host not found"}) {
    INFO(text);
    const TestRelay server(refusing_some(text));
    Courier courier(courier_to(server));
    for (const auto& [user, delivery] : deliver_all(courier, 100)) {
      INFO(user);
      const auto wanted = user % 10 == 0 ? delivery::Verdict::deferred : delivery::Verdict::accepted;
      CHECK(delivery.verdict == wanted);
      CHECK(delivery.counts());
    }
    CHECK_FALSE(courier.breakers().front().is_open());
  }
}

TEST_CASE("words about a limit that few mails get are an attempt at each of them, and no limit") {
  const TestRelay server(refusing_some("450 4.7.1 slow down, rate limit exceeded"));
  Courier courier(courier_to(server));
  for (const auto& [user, delivery] : deliver_all(courier, 100)) {
    INFO(user);
    CHECK(delivery.verdict == (user % 10 == 0 ? delivery::Verdict::deferred : delivery::Verdict::accepted));
  }
  CHECK_FALSE(courier.rate());
}

TEST_CASE("a configured text keeps a permanent refusal from being final") {
  std::atomic<int> mails = 0;
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    const bool refused = moment.step == RelayStep::end && ++mails % 4 == 0;
    return refused ? RelayAnswer::reply("550 5.7.28 unusual volume") : RelayAnswer{};
  }});
  auto options = courier_to(server, 2);
  options.relay.throttled_by = {"unusual volume"};
  Courier courier(options);
  for (int i = 0; i < 10; ++i)
    courier.submit(i, mail_to("user@mail.example"));
  REQUIRE(courier.wait(soon()));
  for (const auto& delivered : courier.take()) {
    if (delivered.is_final) CHECK(delivered.answer.verdict == delivery::Verdict::accepted);
  }
  CHECK(courier.rate());
}

TEST_CASE("a connection too many is refused in many ways, and none of them stops the others") {
  for (const auto step : {RelayStep::greeting, RelayStep::ehlo, RelayStep::mail}) {
    for (const bool is_silent : {false, true}) {
      if (is_silent && step != RelayStep::greeting) continue;
      INFO(static_cast<int>(step) << (is_silent ? " closed" : ""));
      std::mutex mutex;
      std::set<int> serves;
      const TestRelay server({.play = [&](const RelayMoment& moment) {
        const std::lock_guard lock(mutex);
        if (serves.size() < 2) serves.insert(moment.connection);
        if (moment.step != step || serves.contains(moment.connection)) return RelayAnswer{};
        return is_silent ? RelayAnswer::nothing(Then::close)
                         : RelayAnswer::reply("421 4.3.2 Service not available", Then::close);
      }});
      Courier courier(courier_to(server));
      for (int i = 0; i < 4; ++i)
        courier.submit(i, mail_to("user@mail.example"));
      REQUIRE(courier.wait(soon()));
      for (int i = 4; i < 40; ++i)
        courier.submit(i, mail_to("user@mail.example"));
      REQUIRE(courier.wait(soon()));
      int accepted = 0;
      for (const auto& delivered : courier.take())
        accepted += delivered.is_final && delivered.answer.verdict == delivery::Verdict::accepted ? 1 : 0;
      CHECK(accepted >= 36);
      CHECK_FALSE(courier.breakers().front().is_open());
      CHECK(server.connections() < 12);
    }
  }
}

TEST_CASE(
    "a sender without a connection at a full relay gives its mails back, and the relay is not unavailable") {
  const TestRelay server(
      {.play = TestRelay::at(RelayStep::greeting,
                             RelayAnswer::reply("421 4.7.0 too many connections", Then::close))});
  Courier courier(courier_to(server, 2));
  for (int i = 0; i < 10; ++i)
    courier.submit(i, mail_to("user@mail.example"));
  REQUIRE(courier.wait(soon()));
  for (const auto& delivered : courier.take()) {
    if (!delivered.is_final) continue;
    CHECK(delivered.answer.verdict == delivery::Verdict::deferred);
    CHECK(delivered.answer.waits_for_turn);
    CHECK_FALSE(delivered.answer.counts());
  }
  CHECK_FALSE(courier.breakers().front().is_open());
  CHECK(courier.time_to_admission());
  CHECK(server.connections() <= 2);
}

TEST_CASE("what others say of a relay does not stop a sender whose mails it answers") {
  const TestRelay server;
  Courier courier(courier_to(server, 1));
  const auto before = courier.breakers();
  courier.submit(0, mail_to("user@mail.example"));
  REQUIRE(courier.wait(soon()));
  auto open = before;
  open.front() = {
      .failures = 3, .since = wall_now(), .opened_at = wall_now(), .next_probe = wall_now(), .why = "x"};
  courier.set_breakers(before, open);
  CHECK_FALSE(courier.breakers().front().is_open());
}

}  // namespace mailroom::test::some_refused_test
