// What arrives at the relay: nothing but the message, as it is, to its recipient.

#include <random>

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::message_test {
namespace {

/// Lines of all lengths, many of them with dots where they need stuffing.
std::string random_message(std::mt19937& random) {
  std::string message = "Subject: dots\r\n\r\n";
  const auto size = random() % 300'000;
  while (message.size() < size) {
    message.append(random() % 4, '.');
    if (random() % 2 == 0) message.append(random() % 90, 'x');
    message += "\r\n";
  }
  return message;
}

}  // namespace

TEST_CASE("no part of an address or a message becomes a command") {
  const TestRelay server;
  smtp::RelaySession relay(url_of(server), {});
  using namespace std::string_literals;
  for (const auto& address :
       {"a@b.example\r\nRCPT TO:<c@d.example>"s, "a@b.example\nDATA"s, "a\r@b.example"s, "a\0b@c.example"s,
        "a> SIZE=1 <b@c.example"s, "<a@b.example>"s, "a b@c.example"s, "a@b.example "s, "\"a b@c.example"s,
        "a\\@b.example"s, "a@b@c.example"s, "@b.example"s, "a@"s, "a"s, ""s, "ü@b.example"s,
        std::string(250, 'a') + "@b.example"}) {
    INFO(address);
    const auto delivery = relay.deliver(mail_to(address));
    CHECK(text_of(delivery) == "rejected, counted, 0: the address cannot be written into a command");
    auto mail = mail_to("user@mail.example");
    mail.envelope.from = address.empty() ? "none" : address;
    CHECK(relay.deliver(mail).verdict == delivery::Verdict::unavailable);
  }
  for (const auto& message : {"Subject: a\n\r\n"s, "a\r\n.\nQUIT\r\n"s, "a\r\rb\r\n"s, "a\0\r\n"s}) {
    CHECK(relay.deliver(mail_to("user@mail.example", message)).verdict == delivery::Verdict::rejected);
  }
  CHECK(server.connections() == 0);
}

TEST_CASE("the message arrives as it is") {
  const TestRelay server;
  smtp::RelaySession relay(url_of(server), {});
  auto mail = mail_to("user+tag@mail.example");
  CHECK(relay.deliver(mail).verdict == delivery::Verdict::accepted);
  mail.envelope.from.clear();
  CHECK(relay.deliver(mail).verdict == delivery::Verdict::accepted);
  const auto taken = server.taken();
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].from == "<sender@mail.example>");
  CHECK(taken[0].to == "user+tag@mail.example");
  CHECK(taken[0].message == test_message);
  CHECK(taken[1].from == "<>");
  CHECK(taken[1].message == test_message);
}

TEST_CASE("an address with UTF-8 needs a relay that offers SMTPUTF8") {
  auto mail = mail_to("ü@xn--bcher-kva.example");
  mail.envelope.needs_smtputf8 = true;
  {
    const TestRelay server({.offers_smtputf8 = true});
    smtp::RelaySession relay(url_of(server), {});
    CHECK(relay.deliver(mail).verdict == delivery::Verdict::accepted);
    REQUIRE(server.taken().size() == 1);
    CHECK(server.taken()[0].from == "<sender@mail.example> SMTPUTF8");
    CHECK(server.taken()[0].to == "ü@xn--bcher-kva.example");
  }
  const TestRelay server;
  smtp::RelaySession relay(url_of(server), {});
  for (int i = 0; i < 2; ++i) {
    CHECK(text_of(relay.deliver(mail)) ==
          "rejected, counted, 0: the relay does not offer SMTPUTF8, which the mail needs");
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  }
  CHECK(server.taken().size() == 2);
}

TEST_CASE("a sender with UTF-8 is no mail's fault") {
  auto mail = mail_to("user@mail.example");
  mail.envelope.needs_smtputf8 = true;
  mail.envelope.utf8_sender = "grüße@app.example";
  const TestRelay server;
  CHECK(
      text_of(smtp::RelaySession(url_of(server), {}).deliver(mail)) ==
      "unavailable, not counted, 0: the relay does not offer SMTPUTF8, which the sender grüße@app.example needs");
  CHECK(server.taken().empty());
}

// A long message is sent in parts, at whose ends dots and line ends must not be lost or doubled.
TEST_CASE("a message with many dots arrives as it is, whatever its length") {
  const TestRelay server;
  smtp::RelaySession relay(url_of(server), {});
  std::mt19937 random(7);
  std::vector<std::string> messages;
  for (int i = 0; i < 60; ++i)
    messages.push_back(random_message(random));
  for (const std::size_t part : {16'384U, 65'536U}) {
    for (std::size_t before = part - 8; before <= part + 2; ++before) {
      messages.push_back(std::string(before, 'x') + "\r\n.\r\n..\r\n");
    }
  }
  for (const auto& message : messages)
    CHECK(relay.deliver(mail_to("user@mail.example", message)).verdict == delivery::Verdict::accepted);
  const auto taken = server.taken();
  REQUIRE(taken.size() == messages.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    INFO(i << ", " << messages[i].size() << " bytes");
    CHECK((taken[i].message == messages[i]));
  }
  CHECK(server.connections() == 1);
}

}  // namespace mailroom::test::message_test
