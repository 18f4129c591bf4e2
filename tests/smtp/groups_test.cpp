// Several mails in one round trip, and relays that offer it and do something else.

#include <map>
#include <memory>

#include "base/threads.hpp"
#include "smtp/together.hpp"

namespace mailroom::test::groups_test {
namespace {

using delivery::Verdict;
using Then = RelayAnswer::Then;

/// Takes mails in chunks, as far as the play says nothing else.
TestRelay::Options chunking(Play play = {}, Chunks chunks = Chunks::taken) {
  return {.play = std::move(play), .offers_pipelining = true, .chunks = chunks};
}

/// The verbs of the commands from the first BDAT on.
std::string verbs(const TestRelay& server) {
  std::string text;
  for (const auto& command : server.commands()) {
    const auto line = command.substr(command.find(' ') + 1);
    text += line.substr(0, line.find(' ')) + " ";
  }
  return text.substr(std::min(text.find("BDAT"), text.size()));
}

/// Of a session that sends no groups, and each envelope ahead.
constexpr std::size_t window_ahead = 8;

/// True if mails that are delivered together leave in chunks.
bool sends_groups(smtp::RelaySession& relay, const TestRelay& server) {
  const auto count = [&] {
    return std::ranges::count_if(server.commands(),
                                 [](const auto& line) { return line.find(" BDAT ") != std::string::npos; });
  };
  const auto before = count();
  deliver(relay, std::vector<std::string>{"dan@mail.example", "eve@mail.example"});
  return count() > before;
}

}  // namespace

TEST_CASE("mails leave together, and arrive as they are") {
  const TestRelay server(chunking());
  smtp::RelaySession relay(url_of(server), kept());
  const auto delivered = deliver(relay, three);
  CHECK(delivered.window == 4);
  for (const auto& recipient : three) {
    CHECK(delivered.verdicts.at(recipient) == Verdict::accepted);
    CHECK(taken(server, recipient) == 1);
  }
  CHECK(server.taken().back().message == test_message);
  CHECK(server.taken().back().from == "<sender@mail.example>");
  CHECK(server.connections() == 1);
  CHECK(verbs(server).starts_with(
      "BDAT MAIL BDAT RSET MAIL RCPT BDAT RSET MAIL RCPT BDAT RSET MAIL RCPT BDAT"));
  CHECK(sends_groups(relay, server));
}

TEST_CASE("a relay without chunks, or without pipelining, gets one message after the other") {
  for (const bool pipelining : {false, true}) {
    const TestRelay server(
        {.offers_pipelining = pipelining, .chunks = pipelining ? Chunks::none : Chunks::taken});
    const auto delivered = deliver(server, three);
    CHECK(delivered.window == (pipelining ? window_ahead : 1));
    CHECK(verbs(server).empty());
    CHECK(server.taken().size() == 5);
    CHECK(server.connections() == 1);
  }
}

TEST_CASE("a relay that offers chunks and does them wrong gets one message after the other, and none twice") {
  for (const auto chunks : {Chunks::refused, Chunks::read_as_commands}) {
    const TestRelay server(chunking({}, chunks));
    smtp::RelaySession relay(url_of(server), kept());
    const auto delivered = deliver(relay, three);
    for (const auto& recipient : three) {
      CHECK(delivered.verdicts.at(recipient) == Verdict::accepted);
      CHECK(taken(server, recipient) == 1);
    }
    // It is not asked again soon.
    const auto asked = server.commands().size();
    deliver(relay, std::vector<std::string>{"dan@mail.example", "eve@mail.example"});
    const std::size_t resets = 1;
    CHECK(server.commands().size() - asked == 4 * 3 + resets);
  }
}

TEST_CASE("a relay whose replies do not tell commands apart gets one message after the other") {
  const TestRelay server({.offers_pipelining = true, .chunks = Chunks::taken, .rset_reply = "250 2.1.0 ok"});
  smtp::RelaySession relay(url_of(server), kept());
  deliver(relay, three);
  CHECK(server.taken().size() == 5);
  CHECK_FALSE(sends_groups(relay, server));
}

TEST_CASE("a mail that is refused among others has its own answer") {
  const std::string bob = "bob@mail.example";
  for (const auto step : {RelayStep::rcpt, RelayStep::end}) {
    const TestRelay server(chunking(to(bob, step, RelayAnswer::reply("550 5.1.1 no such user"))));
    const auto delivered = deliver(server, three);
    CHECK(delivered.verdicts.at("ada@mail.example") == Verdict::accepted);
    CHECK(delivered.texts.at(bob) == "rejected, counted, 550: 5.1.1 no such user");
    CHECK(delivered.verdicts.at("cyd@mail.example") == Verdict::accepted);
    CHECK(taken(server, bob) == 0);
    CHECK(taken(server, "cyd@mail.example") == 1);
    CHECK(server.connections() == 1);
  }
}

TEST_CASE("a mail whose sender is refused among others is tried again alone") {
  int refusals = 0;
  const TestRelay server(chunking([&](const RelayMoment& moment) {
    const bool is_refused = moment.step == RelayStep::mail && moment.mail == 5 && refusals++ == 0;
    return is_refused ? RelayAnswer::reply("451 4.7.1 later") : RelayAnswer{};
  }));
  const auto delivered = deliver(server, three);
  for (const auto& recipient : three) {
    CHECK(delivered.verdicts.at(recipient) == Verdict::accepted);
    CHECK(taken(server, recipient) == 1);
  }
}

TEST_CASE("of mails that are on their way when the connection is lost nothing is known") {
  const std::string bob = "bob@mail.example";
  for (const auto then : {Then::close, Then::reset, Then::hang}) {
    const TestRelay server(chunking(to(bob, RelayStep::end, RelayAnswer::nothing(then))));
    smtp::RelaySession relay(url_of(server), kept());
    const auto delivered = deliver(relay, three);
    // A reset may take with it what was not read yet.
    CHECK((delivered.verdicts.at("ada@mail.example") == Verdict::accepted || then == Then::reset));
    CHECK(delivered.verdicts.at(bob) == Verdict::unknown);
    // Unless it was too late to leave with the others.
    const bool has_left_later = taken(server, "cyd@mail.example") == 1 && server.connections() == 2;
    CHECK(delivered.verdicts.at("cyd@mail.example") ==
          (has_left_later ? Verdict::accepted : Verdict::unknown));
    CHECK_FALSE(sends_groups(relay, server));
  }
}

TEST_CASE("what follows a goodbye was not taken, and is delivered over another connection") {
  const std::string bob = "bob@mail.example";
  for (const auto step : {RelayStep::rcpt, RelayStep::end}) {
    const TestRelay server(chunking([&, step](const RelayMoment& moment) {
      return moment.connection == 1 && moment.step == step && moment.recipient == bob
                 ? RelayAnswer::reply("421 4.7.0 too many mails", Then::close)
                 : RelayAnswer{};
    }));
    const auto delivered = deliver(server, three);
    for (const auto& recipient : three)
      CHECK(delivered.verdicts.at(recipient) == Verdict::accepted);
    CHECK(server.connections() == 2);
  }
}

TEST_CASE("a reply too many is not taken for that of a mail") {
  for (const std::string second : {"250 2.0.0 ok", "250 2.1.0 ok", "250 ok", "451 4.7.1 later"}) {
    for (const auto step : {RelayStep::mail, RelayStep::rcpt, RelayStep::end}) {
      INFO(second << " at " << static_cast<int>(step));
      // The mail to bob is refused after all.
      const TestRelay server(chunking([&, step](const RelayMoment& moment) {
        if (moment.mail == 4 && moment.step == step && step == RelayStep::mail)
          return RelayAnswer::reply("250 2.1.0 ok\r\n" + second);
        const bool is_ada = moment.recipient == "ada@mail.example" && moment.step == step;
        if (is_ada && step == RelayStep::rcpt) return RelayAnswer::reply("250 2.1.5 ok\r\n" + second);
        if (is_ada && step == RelayStep::end) return RelayAnswer::reply("250 2.0.0 ok\r\n" + second);
        if (moment.recipient == "bob@mail.example" && moment.step == RelayStep::end)
          return RelayAnswer::reply("554 5.6.0 no");
        return RelayAnswer{};
      }));
      const auto delivered = deliver(server, three);
      CHECK(delivered.verdicts.at("bob@mail.example") != Verdict::accepted);
      // What looks like her refusal comes before the reply to RCPT.
      const bool looks_refused = step == RelayStep::mail && second.starts_with("451");
      if (looks_refused) CHECK(delivered.verdicts.at("ada@mail.example") == Verdict::unknown);
    }
  }
}

TEST_CASE("a mail that must not leave is kept from those that leave together") {
  const TestRelay server(chunking());
  smtp::RelaySession relay(url_of(server), kept());
  deliver(relay, three);
  const auto bell = std::make_shared<EventFd>();
  std::vector<delivery::Message> mails{mail_to("dan@mail.example"), mail_to("eve@mail.example")};
  mails[0].clearance = std::make_shared<delivery::Clearance>(bell, false);
  mails[0].clearance->refuse();
  mails[1].clearance = std::make_shared<delivery::Clearance>(bell, true);
  std::map<std::size_t, delivery::Answer> answers;
  relay.deliver(mails, [&](std::size_t i, const delivery::Answer& answer) { answers.emplace(i, answer); });
  CHECK_FALSE(answers.at(0).was_tried);
  CHECK(answers.at(1).verdict == Verdict::accepted);
  CHECK(taken(server, "dan@mail.example") == 0);
  CHECK(taken(server, "eve@mail.example") == 1);
}

TEST_CASE("mails that wait for a slow relay leave one after the other") {
  const TestRelay server(chunking([](const RelayMoment& moment) {
    return moment.step == RelayStep::end ? RelayAnswer{.delay = Milliseconds(200)} : RelayAnswer{};
  }));
  smtp::RelaySession relay(url_of(server), kept());
  CHECK(deliver(relay, {"1@m.example", "2@m.example", "3@m.example", "4@m.example"}).window_after == 2);
}

TEST_CASE("a relay far away gets more and more mails together") {
  const TestRelay server(chunking([](const RelayMoment& moment) {
    const bool is_first = moment.step == RelayStep::mail || moment.step == RelayStep::data;
    return is_first && (moment.mail <= 2 || moment.mail % 8 == 4) ? RelayAnswer{.delay = Milliseconds(200)}
                                                                  : RelayAnswer{};
  }));
  smtp::RelaySession relay(url_of(server), kept());
  const auto delivered = deliver(relay, {"1@m.example", "2@m.example", "3@m.example", "4@m.example"});
  CHECK(delivered.window == 4);
  CHECK(delivered.window_after == 8);
}

}  // namespace mailroom::test::groups_test
