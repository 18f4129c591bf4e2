// Several connections, several relays, their breakers, and a stop while a relay hangs.

#include <atomic>
#include <fmt/format.h>
#include <map>
#include <poll.h>
#include <set>

#include "support/catch.hpp"
#include "support/refusing_port.hpp"
#include "support/subprocess.hpp"
#include "support/test_courier.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::courier_test {
namespace {

using Then = RelayAnswer::Then;

CourierOptions courier_to(std::vector<smtp::RelayUrl> relays, int connections = 4) {
  return {.relays = std::move(relays), .relay = {}, .connections = connections, .seed = 1};
}

TimePoint soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(30);
}

/// Waits until every mail has its outcome, and returns them by id.
std::map<std::int64_t, delivery::Answer> outcomes(Courier& courier) {
  REQUIRE(courier.wait(soon()));
  std::map<std::int64_t, delivery::Answer> found;
  for (auto& delivered : courier.take()) {
    if (delivered.is_final) found.emplace(delivered.answer.id, delivered.answer);
  }
  return found;
}

smtp::RelayUrl url_of(const RefusingPort& closed) {
  return smtp::parse_relay_url(fmt::format("smtp://127.0.0.1:{}", closed.port()));
}

/// A breaker that lets a probe through at once.
delivery::Breaker due_breaker() {
  delivery::Breaker open;
  open.failures = 5;
  open.next_probe = wall_now();
  open.why = "was down";
  return open;
}

bool is_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

}  // namespace

TEST_CASE("a relay that refuses one mail after another is unavailable, and further mails are kept") {
  std::atomic<bool> is_suspended = true;
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    const bool is_refused = is_suspended && moment.step == RelayStep::end;
    return is_refused ? RelayAnswer::reply("554 5.7.1 account suspended, id " + std::to_string(moment.mail))
                      : RelayAnswer{};
  }});
  Courier courier(courier_to({url_of(server)}));
  for (int i = 0; i < 20; ++i)
    courier.submit(i, mail_to(fmt::format("user{}@mail.example", i)));
  std::map<delivery::Verdict, int> outcome_counts;
  for (const auto& [id, delivery] : outcomes(courier))
    ++outcome_counts[delivery.verdict];
  CHECK(outcome_counts[delivery::Verdict::rejected] == delivery::RefusalMemory::equal_run - 1);
  CHECK(outcome_counts[delivery::Verdict::deferred] >= 1);
  CHECK(outcome_counts[delivery::Verdict::deferred] + outcome_counts[delivery::Verdict::unavailable] == 18);
  CHECK(courier.breakers().front().why.starts_with("554 5.7.1 account suspended"));
  // A probe is no victim.
  auto open = courier.breakers();
  open.front().next_probe = wall_now();
  courier.set_breakers(courier.breakers(), open);
  courier.submit(20, mail_to("user@mail.example"));
  CHECK(outcomes(courier).at(20).verdict == delivery::Verdict::deferred);
  is_suspended = false;
  open = courier.breakers();
  open.front().next_probe = wall_now();
  courier.set_breakers(courier.breakers(), open);
  courier.submit(21, mail_to("user@mail.example"));
  CHECK(outcomes(courier).at(21).verdict == delivery::Verdict::accepted);
  CHECK_FALSE(courier.breakers().front().is_open());
}

TEST_CASE("every mail gets one outcome, over as many connections as configured") {
  const TestRelay server({.play = [](const RelayMoment& moment) {
    const bool is_refused = moment.step == RelayStep::rcpt && moment.recipient.starts_with("user7");
    return is_refused ? RelayAnswer::reply("550 5.1.1 no") : RelayAnswer{};
  }});
  Courier courier(courier_to({url_of(server)}, 3));
  for (int i = 0; i < 200; ++i)
    courier.submit(i, mail_to(fmt::format("user{}@mail.example", i)));
  const auto found = outcomes(courier);
  CHECK(found.size() == 200);
  std::multiset<std::string> taken;
  for (const auto& mail : server.taken())
    taken.insert(mail.to);
  for (const auto& [id, delivery] : found) {
    INFO(id);
    const bool is_refused = fmt::format("user{}", id).starts_with("user7");
    CHECK(delivery.verdict == (is_refused ? delivery::Verdict::rejected : delivery::Verdict::accepted));
    CHECK(taken.count(fmt::format("user{}@mail.example", id)) == (is_refused ? 0 : 1));
  }
  CHECK(courier.unfinished() == 0);
}

TEST_CASE("the descriptor becomes readable when every mail has its outcome") {
  std::atomic<bool> released = false;
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    if (moment.step == RelayStep::end && moment.recipient.starts_with("slow"))
      eventually([&] { return released.load(); });
    return RelayAnswer{};
  }});
  Courier courier(courier_to({url_of(server)}, 2));
  CHECK_FALSE(is_readable(courier.fd()));
  courier.submit(1, mail_to("slow@mail.example"));
  courier.submit(2, mail_to("user@mail.example"));
  REQUIRE(eventually([&] { return courier.unfinished() == 1; }));
  CHECK_FALSE(is_readable(courier.fd()));
  released = true;
  CHECK(eventually([&] { return is_readable(courier.fd()); }));
  CHECK(courier.take().size() == 2);
  CHECK_FALSE(is_readable(courier.fd()));
  CHECK(courier.take().empty());
}

TEST_CASE("a slow recipient delays no mail of another connection") {
  std::atomic<bool> released = false;
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    const bool is_slow = moment.step == RelayStep::rcpt && moment.recipient.starts_with("slow");
    if (is_slow) eventually([&] { return released.load(); });
    return RelayAnswer{};
  }});
  auto options = courier_to({url_of(server)}, 2);
  options.relay.timeout = Milliseconds(30'000);
  Courier courier(options);
  courier.submit(0, mail_to("slow@mail.example"));
  for (int i = 1; i <= 20; ++i)
    courier.submit(i, mail_to("user@mail.example"));
  CHECK(eventually([&] { return courier.unfinished() == 1; }));
  released = true;
  CHECK(outcomes(courier).at(0).verdict == delivery::Verdict::accepted);
}

TEST_CASE("mails go to the second relay while the first is unavailable") {
  const TestRelay second;
  const RefusingPort first;
  Courier courier(courier_to({url_of(first), url_of(second)}, 1));
  for (int i = 0; i < 10; ++i)
    courier.submit(i, mail_to("user@mail.example"));
  for (const auto& [id, delivery] : outcomes(courier)) {
    CHECK(delivery.verdict == delivery::Verdict::accepted);
    CHECK(delivery.sink == url_of(second).address());
  }
  const auto breakers = courier.breakers();
  REQUIRE(breakers.size() == 2);
  CHECK(breakers[0].is_open());
  CHECK(breakers[0].why.find("connect") != std::string::npos);
  CHECK_FALSE(breakers[1].is_open());
  CHECK_FALSE(courier.time_to_admission().has_value());
}

TEST_CASE("while no relay is available, mails are given back at once") {
  const RefusingPort closed;
  Courier courier(courier_to({url_of(closed)}, 1));
  courier.submit(0, mail_to("user@mail.example"));
  const auto cause = outcomes(courier).at(0);
  CHECK(cause.verdict == delivery::Verdict::unavailable);
  CHECK(cause.wait == std::chrono::seconds(1));
  // The delay cannot end during the test.
  auto breakers = courier.breakers();
  breakers[0].next_probe = wall_now() + std::chrono::minutes(4);
  breakers[0].opened_at = breakers[0].next_probe;
  courier.set_breakers(courier.breakers(), breakers);
  courier.submit(1, mail_to("user@mail.example"));
  const auto blocked = outcomes(courier).at(1);
  CHECK(text_of(blocked) == text_of(cause));
  CHECK(blocked.wait > std::chrono::minutes(3));
  CHECK(courier.time_to_admission() > std::chrono::minutes(3));
}

TEST_CASE("a probe closes the breaker when the relay is back") {
  const TestRelay server;
  Courier courier(courier_to({url_of(server)}, 1));
  courier.set_breakers(courier.breakers(), {due_breaker()});
  CHECK_FALSE(courier.time_to_admission().has_value());
  courier.submit(0, mail_to("user@mail.example"));
  courier.submit(1, mail_to("user@mail.example"));
  for (const auto& [id, delivery] : outcomes(courier))
    CHECK(delivery.verdict == delivery::Verdict::accepted);
  CHECK(courier.breakers() == std::vector<delivery::Breaker>{delivery::Breaker{}});
}

TEST_CASE("while one mail probes a relay, the others wait for what it finds") {
  for (const bool is_back : {true, false}) {
    INFO(is_back);
    std::atomic<bool> is_probed = false;
    std::atomic<bool> released = false;
    const TestRelay server({.play = [&](const RelayMoment& moment) {
      if (moment.step != RelayStep::greeting) return RelayAnswer{};
      is_probed = true;
      eventually([&] { return released.load(); });
      return is_back ? RelayAnswer{} : RelayAnswer::reply("554 still down", Then::close);
    }});
    Courier courier(courier_to({url_of(server)}, 4));
    courier.set_breakers(courier.breakers(), {due_breaker()});
    for (int i = 0; i < 8; ++i)
      courier.submit(i, mail_to("user@mail.example"));
    REQUIRE(eventually([&] { return is_probed.load(); }));
    CHECK(courier.unfinished() == 8);
    CHECK(server.connections() == 1);
    released = true;
    const auto found = outcomes(courier);
    REQUIRE(found.size() == 8);
    for (const auto& [id, delivery] : found) {
      CHECK(delivery.verdict == (is_back ? delivery::Verdict::accepted : delivery::Verdict::unavailable));
      if (!is_back) CHECK(delivery.wait > std::chrono::seconds(20));
    }
    CHECK(courier.breakers().at(0).is_open() == !is_back);
    if (!is_back) CHECK(server.connections() == 1);
  }
}

TEST_CASE("what others know of a relay does not replace what a mail has just shown") {
  const TestRelay server;
  Courier courier(courier_to({url_of(server)}, 1));
  courier.set_breakers(courier.breakers(), {due_breaker()});
  const auto seen = courier.breakers();
  courier.submit(0, mail_to("user@mail.example"));
  CHECK(outcomes(courier).at(0).verdict == delivery::Verdict::accepted);
  // Read before the mail was accepted.
  auto probed_by_another = seen;
  probed_by_another[0].next_probe = wall_now() + std::chrono::minutes(4);
  courier.set_breakers(seen, probed_by_another);
  CHECK(courier.breakers() == std::vector<delivery::Breaker>{delivery::Breaker{}});
}

TEST_CASE("cancel also ends the mails that wait for a probe") {
  std::atomic<bool> hangs = false;
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    if (moment.step != RelayStep::mail) return RelayAnswer{};
    hangs = true;
    return RelayAnswer::nothing(Then::hang);
  }});
  auto options = courier_to({url_of(server)}, 3);
  options.relay.timeout = std::chrono::minutes(10);
  Courier courier(options);
  courier.set_breakers(courier.breakers(), {due_breaker()});
  for (int i = 0; i < 3; ++i)
    courier.submit(i, mail_to("user@mail.example"));
  REQUIRE(eventually([&] { return hangs.load(); }));
  courier.cancel();
  const auto found = outcomes(courier);
  REQUIRE(found.size() == 3);
  for (const auto& [id, delivery] : found) {
    CHECK(delivery.verdict == delivery::Verdict::deferred);
    CHECK_FALSE(delivery.counts());
  }
  CHECK(courier.breakers().at(0).is_open());
}

TEST_CASE("a mail that a relay refuses leaves the breaker closed") {
  const TestRelay server({.play = TestRelay::at(RelayStep::rcpt, RelayAnswer::reply("450 later"))});
  Courier courier(courier_to({url_of(server)}, 1));
  courier.submit(0, mail_to("user@mail.example"));
  CHECK(outcomes(courier).at(0).verdict == delivery::Verdict::deferred);
  CHECK_FALSE(courier.breakers().at(0).is_open());
}

TEST_CASE("cancel ends a hanging relay at once, at each step") {
  struct CancelRow {
    RelayStep step;
    std::string delivery;
  };
  const std::vector<CancelRow> rows{
      {RelayStep::greeting, "deferred, not counted, 0: stopped before the relay answered the connection"},
      {RelayStep::ehlo, "deferred, not counted, 0: stopped before the relay answered EHLO"},
      {RelayStep::mail, "deferred, not counted, 0: stopped before the relay answered MAIL"},
      {RelayStep::rcpt, "deferred, not counted, 0: stopped before the relay answered RCPT"},
      {RelayStep::data, "deferred, not counted, 0: stopped before the relay answered DATA"},
      {RelayStep::end, "unknown, counted, 0: stopped before the relay answered the end of the message"},
  };
  for (const auto& row : rows) {
    INFO(static_cast<int>(row.step));
    std::atomic<bool> hangs = false;
    const TestRelay server({.play = [&](const RelayMoment& moment) {
      if (moment.step != row.step || moment.connection > 1) return RelayAnswer{};
      hangs = true;
      return RelayAnswer::nothing(Then::hang);
    }});
    auto options = courier_to({url_of(server)}, 1);
    // The test would take minutes if cancel() waited for them.
    options.relay.timeout = options.relay.end_timeout = std::chrono::minutes(10);
    Courier courier(options);
    courier.submit(0, mail_to("user@mail.example"));
    courier.submit(1, mail_to("next@mail.example"));
    REQUIRE(eventually([&] { return hangs.load(); }));
    courier.cancel();
    CHECK(courier.unfinished() == 0);
    auto found = outcomes(courier);
    CHECK(text_of(found.at(0)) == row.delivery);
    CHECK(text_of(found.at(1)) == "deferred, not counted, 0: stopped before it was sent");
    // The courier can be used again.
    courier.submit(2, mail_to("user@mail.example"));
    CHECK(outcomes(courier).at(2).verdict == delivery::Verdict::accepted);
  }
}

TEST_CASE("a courier ends while a relay hangs at QUIT") {
  const TestRelay server({.play = TestRelay::at(RelayStep::end, RelayAnswer{.then = Then::hang})});
  auto options = courier_to({url_of(server)}, 2);
  options.relay.timeout = options.relay.end_timeout = std::chrono::minutes(10);
  {
    Courier courier(options);
    courier.submit(0, mail_to("user@mail.example"));
    CHECK(outcomes(courier).at(0).verdict == delivery::Verdict::accepted);
  }
  CHECK(server.taken().size() == 1);
}

TEST_CASE("a message lives until its outcome is taken, and no longer") {
  const TestRelay server;
  Courier courier(courier_to({url_of(server)}));
  for (int round = 0; round < 20; ++round) {
    const auto message = fmt::format("Subject: {}\r\n\r\n", round);
    courier.submit(round, mail_to("user@mail.example", message));
    CHECK(outcomes(courier).at(round).verdict == delivery::Verdict::accepted);
    CHECK(server.taken().back().message == message);
  }
}

}  // namespace mailroom::test::courier_test
