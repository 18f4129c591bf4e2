// Relays that limit the rate, the connections, or the mails at once.

#include <atomic>
#include <map>

#include "support/catch.hpp"
#include "support/refusing_port.hpp"
#include "support/test_courier.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::limits_test {
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

}  // namespace

TEST_CASE("of two addresses one that accepts connections and does not serve is skipped") {
  const TestRelay server;
  const SilentPort silent(server.port());
  const auto port = std::to_string(server.port());
  auto options = impatient();
  options.resolve = {"localhost:" + port + ":127.0.0.2,127.0.0.1"};
  smtp::RelaySession relay(smtp::parse_relay_url("smtp://localhost:" + port), options);
  CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  CHECK(server.connections() == 1);
}

TEST_CASE("if no address serves, the reply of the last one is reported") {
  const TestRelay server(
      {.play = TestRelay::at(RelayStep::greeting, RelayAnswer::reply("421 busy", Then::close))});
  const SilentPort silent(server.port());
  const auto port = std::to_string(server.port());
  auto options = impatient();
  options.resolve = {"localhost:" + port + ":127.0.0.2,127.0.0.1"};
  smtp::RelaySession relay(smtp::parse_relay_url("smtp://localhost:" + port), options);
  CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) == "unavailable, not counted, 421: busy");
  CHECK(server.connections() == 1);
}

TEST_CASE("a relay that takes few connections gets them, and is not unavailable") {
  // Until the first refusal is learnt from, all but two of those that the carrier has: one for each
  // connection, and twice as many ahead. Then one of three.
  constexpr int most_refused = 4 + 8 - 2 + 1;
  for (const auto step : {RelayStep::greeting, RelayStep::end}) {
    INFO(static_cast<int>(step));
    std::atomic<int> inside = 0;
    std::atomic<int> refused = 0;
    const TestRelay server({.play = [&](const RelayMoment& moment) {
      if (moment.step != step) return RelayAnswer{};
      // The third connection, or the third mail at once.
      if (step == RelayStep::greeting ? moment.connection > 2 : ++inside > 2) {
        ++refused;
        inside -= step == RelayStep::end ? 1 : 0;
        return RelayAnswer::reply(step == RelayStep::greeting ? "421 4.7.0 too many" : "432 4.3.2 too many",
                                  step == RelayStep::greeting ? Then::close : Then::go_on);
      }
      if (step == RelayStep::end) {
        std::this_thread::sleep_for(Milliseconds(5));
        --inside;
      }
      return RelayAnswer{};
    }});
    Courier courier(courier_to({url_of(server)}, 4));
    for (int i = 0; i < 40; ++i)
      courier.submit(i, mail_to("user@mail.example"));
    REQUIRE(courier.wait(soon()));
    int accepted = 0;
    for (const auto& delivered : courier.take())
      accepted += delivered.is_final && delivered.answer.verdict == delivery::Verdict::accepted ? 1 : 0;
    CHECK(accepted == 40);
    CHECK_FALSE(courier.breakers().at(0).is_open());
    CHECK(refused <= most_refused);
  }
}

TEST_CASE("a mail that comes too fast is tried again, and counts no attempt") {
  std::atomic<int> mails = 0;
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    const bool is_refused = moment.step == RelayStep::end && ++mails % 4 == 0;
    return is_refused ? RelayAnswer::reply("454 Throttling failure: Maximum sending rate exceeded.")
                      : RelayAnswer{};
  }});
  Courier courier(courier_to({url_of(server)}, 2));
  for (int i = 0; i < 10; ++i)
    courier.submit(i, mail_to("user@mail.example"));
  REQUIRE(courier.wait(soon()));
  int accepted = 0;
  int again = 0;
  for (const auto& [delivery, is_final, may_be_taken, at] : courier.take()) {
    accepted += delivery.verdict == delivery::Verdict::accepted ? 1 : 0;
    again += is_final ? 0 : 1;
    if (!is_final)
      CHECK(text_of(delivery) ==
            "deferred, not counted, 454: Throttling failure: Maximum sending rate exceeded.");
  }
  CHECK(accepted == 10);
  CHECK(again == 3);
  CHECK(server.taken().size() == 10);
  CHECK(server.connections() <= 2);
  CHECK(courier.rate().has_value());
}

TEST_CASE("a mail that cannot have its turn in time is given back, with the time until then") {
  const TestRelay server({.play = TestRelay::at(RelayStep::end, RelayAnswer::reply("454 too fast"))});
  Courier courier(courier_to({url_of(server)}, 1));
  const auto soon_expired = std::chrono::steady_clock::now() + Milliseconds(300);
  for (int i = 0; i < 5; ++i)
    courier.submit(i, mail_to("user@mail.example"), 0, soon_expired);
  for (const auto& [id, delivery] : outcomes(courier)) {
    CHECK(delivery.verdict == delivery::Verdict::deferred);
    CHECK_FALSE(delivery.counts());
    CHECK(delivery.waits_for_turn);
  }
}

TEST_CASE("a relay that refuses MAIL is unavailable, and gets no storm of connections") {
  const TestRelay server({.play = TestRelay::at(RelayStep::mail, RelayAnswer::reply("451 4.3.0 later"))});
  Courier courier(courier_to({url_of(server)}, 4));
  auto mail = mail_to("user@mail.example");
  mail.envelope.author = "no-reply@app.example";
  for (int i = 0; i < 50; ++i)
    courier.submit(i, mail);
  for (const auto& [id, delivery] : outcomes(courier))
    CHECK(delivery.verdict == delivery::Verdict::unavailable);
  // Four at once, and of the others, which are like them, those at the powers of two.
  CHECK(server.connections() <= 4 + 6);
}

}  // namespace mailroom::test::limits_test
