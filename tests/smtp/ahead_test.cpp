// The envelope of a mail that is sent with the message before it.

#include <memory>

#include "base/threads.hpp"
#include "smtp/together.hpp"

namespace mailroom::test::ahead_test {
namespace {

using delivery::Verdict;
using Then = RelayAnswer::Then;

TestRelay::Options pipelining(Play play = {}) {
  return {.play = std::move(play), .offers_pipelining = true};
}

const std::string ada = three[0];
const std::string bob = three[1];
const std::string cyd = three[2];

}  // namespace

TEST_CASE("a relay has the envelope of the next mail before it answers a message") {
  // It answers only when it has received more.
  const TestRelay server(pipelining([](const RelayMoment& moment) {
    const bool waits = moment.step == RelayStep::end && (moment.recipient == ada || moment.recipient == bob);
    return RelayAnswer{.is_late = waits};
  }));
  const auto delivered = deliver(server, three);
  for (const auto& recipient : three) {
    CHECK(delivered.verdicts.at(recipient) == Verdict::accepted);
    CHECK(taken(server, recipient) == 1);
  }
  CHECK(server.taken().back().message == test_message);
  CHECK(server.taken().back().from == "<sender@mail.example>");
  CHECK(server.connections() == 1);
}

TEST_CASE("a mail whose envelope went ahead has its own answer") {
  for (const auto step : {RelayStep::mail, RelayStep::rcpt, RelayStep::data, RelayStep::end}) {
    for (const bool takes_empty : {false, true}) {
      INFO(static_cast<int>(step));
      auto options = pipelining([&, step](const RelayMoment& moment) {
        const bool is_bob =
            step == RelayStep::mail ? moment.mail == 4 && moment.connection == 1 : moment.recipient == bob;
        return is_bob && moment.step == step ? RelayAnswer::reply("550 5.1.1 no such user") : RelayAnswer{};
      });
      options.takes_empty_messages = takes_empty;
      const TestRelay server(options);
      const auto delivered = deliver(server, three);
      CHECK(delivered.verdicts.at(ada) == Verdict::accepted);
      // Its sender may be known again over another connection.
      const bool is_tried_again = step == RelayStep::mail;
      CHECK(delivered.verdicts.at(bob) == (is_tried_again ? Verdict::accepted : Verdict::rejected));
      CHECK(delivered.verdicts.at(cyd) == Verdict::accepted);
      CHECK(taken(server, bob) == (is_tried_again ? 1 : 0));
      CHECK(taken(server, cyd) == 1);
    }
  }
}

TEST_CASE("of a mail whose envelope went ahead nothing is unknown when the connection is lost") {
  for (const auto then : {Then::close, Then::reset, Then::hang}) {
    const TestRelay server(pipelining(to(ada, RelayStep::end, RelayAnswer::nothing(then))));
    const auto delivered = deliver(server, three);
    CHECK(delivered.verdicts.at(ada) == Verdict::unknown);
    for (const auto& recipient : {bob, cyd}) {
      CHECK(delivered.verdicts.at(recipient) == Verdict::accepted);
      CHECK(taken(server, recipient) == 1);
    }
    CHECK(server.connections() == 2);
  }
}

TEST_CASE("a mail whose envelope went ahead is tried again after a goodbye") {
  for (const auto step : {RelayStep::mail, RelayStep::rcpt, RelayStep::data}) {
    const TestRelay server(pipelining([step](const RelayMoment& moment) {
      const bool is_bob = moment.mail == 4 && moment.connection == 1;
      return is_bob && moment.step == step ? RelayAnswer::reply("421 4.7.0 too many mails", Then::close)
                                           : RelayAnswer{};
    }));
    const auto delivered = deliver(server, three);
    for (const auto& recipient : three)
      CHECK(taken(server, recipient) == (delivered.verdicts.at(recipient) == Verdict::accepted ? 1 : 0));
    CHECK(delivered.verdicts.at(cyd) == Verdict::accepted);
    CHECK(server.connections() == 2);
  }
}

TEST_CASE("a relay that throws away what went ahead gets one mail after the other") {
  auto options = pipelining();
  options.forgets_input = true;
  const TestRelay server(options);
  smtp::RelaySession relay(url_of(server), kept());
  const auto delivered = deliver(relay, three);
  for (const auto& recipient : three) {
    CHECK(delivered.verdicts.at(recipient) == Verdict::accepted);
    CHECK(taken(server, recipient) == 1);
  }
  CHECK(delivered.window_after == 1);
  CHECK(server.connections() == 2);
  deliver(relay, std::vector<std::string>{"dan@mail.example", "eve@mail.example"});
  CHECK(server.connections() == 2);
}

TEST_CASE("a reply too many is not taken for that to a mail whose envelope went ahead") {
  for (const std::string second : {"250 2.0.0 ok", "250 ok", "354 go ahead", "451 4.7.1 later"}) {
    INFO(second);
    const TestRelay server(
        pipelining(to(ada, RelayStep::end, RelayAnswer::reply("250 2.0.0 ok\r\n" + second))));
    const auto delivered = deliver(server, three);
    CHECK(delivered.verdicts.at(ada) == Verdict::accepted);
    for (const auto& recipient : {bob, cyd})
      CHECK(taken(server, recipient) == (delivered.verdicts.at(recipient) == Verdict::accepted ? 1 : 0));
    CHECK(delivered.verdicts.at(cyd) == Verdict::accepted);
  }
}

TEST_CASE("a mail that must not leave goes no further than its envelope") {
  const TestRelay server(pipelining());
  smtp::RelaySession relay(url_of(server), kept());
  const auto bell = std::make_shared<EventFd>();
  std::vector<delivery::Message> mails{mail_to(ada), mail_to(bob), mail_to(cyd)};
  mails[1].clearance = std::make_shared<delivery::Clearance>(bell, false);
  mails[1].clearance->refuse();
  mails[2].clearance = std::make_shared<delivery::Clearance>(bell, true);
  const auto delivered = deliver(relay, mails);
  CHECK(delivered.untried == 1);
  CHECK(taken(server, bob) == 0);
  CHECK(taken(server, cyd) == 1);
}

TEST_CASE("few mails wait for a connection whose relay takes long for each") {
  const TestRelay server(pipelining([](const RelayMoment& moment) {
    return moment.step == RelayStep::end ? RelayAnswer{.delay = Milliseconds(200)} : RelayAnswer{};
  }));
  const auto delivered = deliver(server, three);
  CHECK(delivered.window == 8);
  CHECK(delivered.window_after == 2);
}

TEST_CASE("an envelope that the relay could not carry does not go ahead") {
  const TestRelay server(pipelining());
  smtp::RelaySession relay(url_of(server), kept());
  std::vector<delivery::Message> mails{mail_to(ada), mail_to(bob), mail_to("cy d@mail.example")};
  mails[1].envelope.needs_smtputf8 = true;
  const auto delivered = deliver(relay, mails);
  CHECK(delivered.verdicts.at(ada) == Verdict::accepted);
  CHECK(delivered.verdicts.at(bob) == Verdict::rejected);
  CHECK(delivered.verdicts.at("cy d@mail.example") == Verdict::rejected);
  CHECK(server.connections() == 1);
  CHECK(relay.deliver(mail_to(cyd)).verdict == Verdict::accepted);
}

TEST_CASE("of mails that are delivered together those are not tried that a relay is unavailable for") {
  const TestRelay server(pipelining([](const RelayMoment& moment) {
    const bool is_down = moment.connection > 1 && moment.step == RelayStep::greeting;
    if (is_down) return RelayAnswer::reply("421 4.3.2 down", Then::close);
    return moment.mail == 3 && moment.step == RelayStep::end ? RelayAnswer::nothing(Then::close)
                                                             : RelayAnswer{};
  }));
  const auto delivered = deliver(server, three);
  CHECK(delivered.verdicts.at(ada) == Verdict::unknown);
  CHECK(delivered.texts.at(bob).find("421") != std::string::npos);
  CHECK(delivered.untried == 1);
}

}  // namespace mailroom::test::ahead_test
