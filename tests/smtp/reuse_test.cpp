// Several mails over one connection, and what the end of one means for the next.

#include <atomic>
#include <fmt/format.h>

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::reuse_test {
namespace {

using Then = RelayAnswer::Then;
using Play = std::function<RelayAnswer(const RelayMoment&)>;

/// Gives `answer` at `step` of the second mail of the first connection.
Play at_second_mail(RelayStep step, RelayAnswer answer) {
  return [step, answer](const RelayMoment& moment) {
    return moment.step == step && moment.connection == 1 && moment.mail == 2 ? answer : RelayAnswer{};
  };
}

/// Delivers two mails and returns the outcome of the second.
delivery::Answer deliver_second(const TestRelay& server) {
  smtp::RelaySession relay(url_of(server), impatient());
  REQUIRE(relay.deliver(mail_to("first@mail.example")).verdict == delivery::Verdict::accepted);
  return relay.deliver(mail_to("second@mail.example"));
}

}  // namespace

TEST_CASE("mails share a connection, which ends with QUIT") {
  const TestRelay server;
  {
    smtp::RelaySession relay(url_of(server), {});
    for (int i = 0; i < 5; ++i)
      CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  }
  CHECK(server.connections() == 1);
  CHECK(server.taken().size() == 5);
  CHECK(eventually([&] { return server.commands().back() == "1 QUIT"; }));
}

TEST_CASE("an idle connection that the relay closes costs no mail") {
  for (const auto& answer :
       {RelayAnswer::reply("421 4.4.2 idle too long", Then::close), RelayAnswer::nothing(Then::close),
        RelayAnswer::nothing(Then::reset), RelayAnswer::nothing(Then::hang)}) {
    const TestRelay server({.play = at_second_mail(RelayStep::mail, answer)});
    CHECK(deliver_second(server).verdict == delivery::Verdict::accepted);
    CHECK(server.connections() == 2);
    CHECK(server.taken().size() == 2);
  }
}

TEST_CASE(
    "a connection that a network has forgotten costs a mail a short time, however long a reply may take") {
  for (const bool pipelining : {false, true}) {
    const TestRelay server({.play = at_second_mail(RelayStep::mail, RelayAnswer::nothing(Then::hang)),
                            .offers_pipelining = pipelining});
    smtp::RelayOptions options;
    options.timeout = options.end_timeout = std::chrono::minutes(10);
    options.rest_time = Milliseconds(0);
    options.rested_timeout = Milliseconds(100);
    smtp::RelaySession relay(url_of(server), options);
    REQUIRE(relay.deliver(mail_to("first@mail.example")).verdict == delivery::Verdict::accepted);
    CHECK(relay.deliver(mail_to("second@mail.example")).verdict == delivery::Verdict::accepted);
    CHECK(server.connections() == 2);
  }
}

// Both lines arrive in one packet, so the second is read before the next mail begins.
TEST_CASE("a goodbye or a second reply together with the reply to a mail costs no other mail") {
  for (const std::string second :
       {"421 4.7.0 too many mails", "250 2.0.0 ok", "451 4.7.1 later", "530 5.7.0 who", "554 5.7.1 no"}) {
    for (const auto then : {Then::go_on, Then::close}) {
      INFO(second);
      const auto answer = RelayAnswer::reply("250 2.0.0 ok\r\n" + second, then);
      const TestRelay server({.play = TestRelay::once(RelayStep::end, answer)});
      smtp::RelaySession relay(url_of(server), {});
      CHECK(text_of(relay.deliver(mail_to("first@mail.example"))) == "accepted, counted, 250: 2.0.0 ok");
      CHECK(text_of(relay.deliver(mail_to("second@mail.example"))) ==
            "accepted, counted, 250: 2.0.0 ok: queued as Q2-1");
      CHECK(server.connections() == 2);
      CHECK(server.taken().size() == 2);
    }
  }
}

TEST_CASE("a relay that refuses MAIL on a kept connection is asked once more, on a fresh one") {
  for (const std::string text : {"450 4.3.2 later", "550 5.7.1 never"}) {
    INFO(text);
    std::atomic<bool> refuses = false;
    const TestRelay server({.play = [&](const RelayMoment& moment) {
      return refuses && moment.step == RelayStep::mail ? RelayAnswer::reply(text) : RelayAnswer{};
    }});
    smtp::RelaySession relay(url_of(server), {});
    REQUIRE(relay.deliver(mail_to("first@mail.example")).verdict == delivery::Verdict::accepted);
    refuses = true;
    CHECK(relay.deliver(mail_to("second@mail.example")).code == std::stoi(text));
    CHECK(server.connections() == 2);
  }
}

TEST_CASE("what a relay says unasked, or a connection that it has closed, costs no mail") {
  for (const std::string text : {"421 4.4.2 idle too long", "554 5.7.1 no", "250 2.0.0 ok"}) {
    for (const auto then : {Then::go_on, Then::close}) {
      INFO(text);
      std::atomic<bool> is_idle = false;
      const auto wait = [&] {
        eventually([&] { return is_idle.load(); });
        return text;
      };
      const TestRelay server(
          {.play = TestRelay::once(RelayStep::end, RelayAnswer{.then = then, .unasked = wait})});
      smtp::RelaySession relay(url_of(server), {});
      CHECK(relay.deliver(mail_to("first@mail.example")).verdict == delivery::Verdict::accepted);
      is_idle = true;
      REQUIRE(eventually([&] { return server.unasked() == 1; }));
      CHECK(text_of(relay.deliver(mail_to("second@mail.example"))) ==
            "accepted, counted, 250: 2.0.0 ok: queued as Q2-1");
      CHECK(server.connections() == 2);
    }
  }
}

TEST_CASE("a relay that closes after some mails gets the others over new connections") {
  const TestRelay server({.play = [](const RelayMoment& moment) {
    const bool is_last = moment.step == RelayStep::end && moment.mail == 3;
    return is_last ? RelayAnswer{.then = Then::close} : RelayAnswer{};
  }});
  smtp::RelaySession relay(url_of(server), {});
  for (int i = 0; i < 10; ++i) {
    INFO(i);
    CHECK(relay.deliver(mail_to(fmt::format("user{}@mail.example", i))).verdict ==
          delivery::Verdict::accepted);
  }
  CHECK(server.connections() == 4);
  const auto taken = server.taken();
  REQUIRE(taken.size() == 10);
  for (std::size_t i = 0; i < taken.size(); ++i)
    CHECK(taken[i].to == fmt::format("user{}@mail.example", i));
}

TEST_CASE("a refused mail does not affect the next one") {
  for (const auto step : {RelayStep::mail, RelayStep::rcpt, RelayStep::data, RelayStep::end}) {
    for (const std::string text : {"450 later", "550 never"}) {
      for (const bool pipelining : {false, true}) {
        INFO(static_cast<int>(step) << " " << text << " " << pipelining);
        const TestRelay server(
            {.play = TestRelay::once(step, RelayAnswer::reply(text)), .offers_pipelining = pipelining});
        smtp::RelaySession relay(url_of(server), {});
        CHECK(relay.deliver(mail_to("first@mail.example")).code == std::stoi(text));
        CHECK(relay.deliver(mail_to("second@mail.example")).verdict == delivery::Verdict::accepted);
        REQUIRE(server.taken().size() == 1);
        CHECK(server.taken()[0].to == "second@mail.example");
      }
    }
  }
}

TEST_CASE("a refused mail costs no connection, which ends with QUIT") {
  for (const auto step : {RelayStep::rcpt, RelayStep::data, RelayStep::end}) {
    for (const bool pipelining : {false, true}) {
      for (const bool takes_empty : {false, true}) {
        INFO(static_cast<int>(step) << " " << pipelining << " " << takes_empty);
        const TestRelay server({.play = TestRelay::at(step, RelayAnswer::reply("550 5.1.1 unknown")),
                                .offers_pipelining = pipelining,
                                .takes_empty_messages = takes_empty});
        {
          smtp::RelaySession relay(url_of(server), {});
          for (int i = 0; i < 3; ++i) {
            CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
                  "rejected, counted, 550: 5.1.1 unknown");
          }
        }
        CHECK(eventually([&] { return server.commands().back() == "1 QUIT"; }));
        CHECK(server.connections() == 1);
        CHECK(server.taken().empty());
      }
    }
  }
}

TEST_CASE("a connection whose MAIL is refused ends with QUIT") {
  for (const bool pipelining : {false, true}) {
    const TestRelay server({.play = TestRelay::at(RelayStep::mail, RelayAnswer::reply("451 4.3.0 later")),
                            .offers_pipelining = pipelining});
    smtp::RelaySession relay(url_of(server), {});
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::unavailable);
    CHECK(eventually([&] { return server.commands().back() == "1 QUIT"; }));
  }
}

TEST_CASE("a relay that does not answer RSET costs no mail") {
  const TestRelay server(
      {.play = TestRelay::once(RelayStep::rcpt, RelayAnswer::reply("450 later")), .is_deaf_to_rset = true});
  smtp::RelaySession relay(url_of(server), impatient());
  CHECK(relay.deliver(mail_to("first@mail.example")).code == 450);
  CHECK(relay.deliver(mail_to("second@mail.example")).verdict == delivery::Verdict::accepted);
  CHECK(server.connections() == 2);
}

TEST_CASE("a relay that closes with 421 after some mails gets the others over another connection") {
  for (const auto step : {RelayStep::mail, RelayStep::rcpt, RelayStep::data, RelayStep::end}) {
    INFO(static_cast<int>(step));
    const auto answer = RelayAnswer::reply("421 4.7.0 too many messages on this connection", Then::close);
    const TestRelay server({.play = at_second_mail(step, answer)});
    CHECK(deliver_second(server).verdict == delivery::Verdict::accepted);
    CHECK(server.connections() == 2);
  }
}

TEST_CASE("the commands of a mail go together if the relay offers PIPELINING, and only then") {
  for (const bool pipelining : {false, true}) {
    // The reply to MAIL waits for what comes after it.
    const TestRelay server({.play = TestRelay::at(RelayStep::mail, RelayAnswer{.is_late = true}),
                            .offers_pipelining = pipelining});
    smtp::RelaySession relay(url_of(server), impatient());
    for (int i = 1; i <= 2; ++i) {
      CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
            (pipelining ? fmt::format("accepted, counted, 250: 2.0.0 ok: queued as Q1-{}", i)
                        : "unavailable, not counted, 0: no reply to MAIL within 1s"));
    }
    CHECK(server.taken().size() == (pipelining ? 2 : 0));
  }
}

TEST_CASE("a second reply to a command is not taken for the reply to what follows") {
  const auto deliver = [](RelayStep step, const std::string& text, bool pipelining) {
    INFO(static_cast<int>(step) << " " << pipelining);
    const TestRelay server(
        {.play = TestRelay::once(step, RelayAnswer::reply(text)), .offers_pipelining = pipelining});
    smtp::RelaySession relay(url_of(server), {});
    CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
          "accepted, counted, 250: 2.0.0 ok: queued as Q2-1");
    CHECK(server.connections() == 2);
    CHECK(server.taken().size() == 1);
  };
  for (const std::string second : {"250 2.0.0 ok", "550 5.7.1 no"}) {
    deliver(RelayStep::mail, "250 2.1.0 ok\r\n" + second, false);
    deliver(RelayStep::rcpt, "250 2.1.5 ok\r\n" + second, false);
    for (const bool pipelining : {false, true})
      deliver(RelayStep::data, "354 go ahead\r\n" + second, pipelining);
  }
}

TEST_CASE("the late reply to one mail is never taken for the reply to the next one") {
  for (const std::string late : {"554 5.7.1 spam", "250 2.0.0 ok"}) {
    const TestRelay server({.play = [&](const RelayMoment& moment) -> RelayAnswer {
      if (moment.connection == 1 && moment.step == RelayStep::end) return {.text = late, .is_late = true};
      if (moment.step == RelayStep::rcpt && moment.recipient.starts_with("nobody")) {
        return RelayAnswer::reply("550 5.1.1 no such user");
      }
      return {};
    }});
    smtp::RelaySession relay(url_of(server), impatient());
    CHECK(relay.deliver(mail_to("first@mail.example")).verdict == delivery::Verdict::unknown);
    CHECK(relay.deliver(mail_to("second@mail.example")).verdict == delivery::Verdict::accepted);
    CHECK(text_of(relay.deliver(mail_to("nobody@mail.example"))) ==
          "rejected, counted, 550: 5.1.1 no such user");
    CHECK(server.connections() == 2);
  }
}

TEST_CASE("only the end of the message has the longer time-out") {
  CHECK(smtp::RelayOptions().end_timeout >= std::chrono::minutes(2));
  const RelayAnswer slow{.delay = Milliseconds(2200)};
  auto options = impatient();
  options.end_timeout = Milliseconds(60'000);
  {
    const TestRelay server({.play = TestRelay::at(RelayStep::end, slow)});
    smtp::RelaySession relay(url_of(server), options);
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  }
  const TestRelay server({.play = TestRelay::at(RelayStep::rcpt, slow)});
  smtp::RelaySession relay(url_of(server), options);
  CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::deferred);
}

TEST_CASE("a relay that answers slowly but in time is not given up") {
  const TestRelay server(
      {.play = [](const RelayMoment&) { return RelayAnswer{.delay = Milliseconds(700)}; }});
  auto options = impatient();
  options.timeout = Milliseconds(5000);
  smtp::RelaySession relay(url_of(server), options);
  CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  CHECK(server.connections() == 1);
}

}  // namespace mailroom::test::reuse_test
