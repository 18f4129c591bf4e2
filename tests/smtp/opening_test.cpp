// How a connection is opened: at which address, with which offer; and how it is given up.

#include <atomic>

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_certificate.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::opening_test {
namespace {

using Then = RelayAnswer::Then;

const std::string password = "open sesame 4711";

/// Relays of one name, at two addresses; the first at 127.0.0.2.
struct TwoAddresses {
  TestCertificate certificate{{.names = "DNS:localhost"}};
  TestRelay second;
  TestRelay first;

  explicit TwoAddresses(TestRelay::Options of_first) : second(serving()), first(at_first(of_first)) {}

  TestRelay::Options serving() const {
    return {.certificate = &certificate, .offers_starttls = true, .user = "alice", .password = password};
  }
  TestRelay::Options at_first(TestRelay::Options options) const {
    options.certificate = &certificate;
    options.port_on_second_address = second.port();
    return options;
  }
  smtp::RelaySession relay() const {
    const auto port = std::to_string(second.port());
    auto options = impatient();
    options.password = password;
    options.ca_file = certificate.certificate();
    options.resolve = {"localhost:" + port + ":127.0.0.2,127.0.0.1"};
    return {smtp::parse_relay_url("smtp://alice@localhost:" + port), options};
  }
};

TestRelay::Options first_that(RelayStep step, const RelayAnswer& answer) {
  return {
      .play = TestRelay::at(step, answer), .offers_starttls = true, .user = "alice", .password = password};
}

std::vector<TestRelay::Options> options_that_do_not_serve() {
  auto without_starttls = first_that(RelayStep::greeting, {});
  without_starttls.offers_starttls = false;
  auto without_auth = first_that(RelayStep::greeting, {});
  without_auth.user = "";
  return {first_that(RelayStep::greeting, RelayAnswer::reply("421 4.7.0 busy", Then::close)),
          first_that(RelayStep::greeting, RelayAnswer::reply("* OK IMAP4rev1 ready")),
          first_that(RelayStep::ehlo, RelayAnswer::reply("421 4.7.0 busy", Then::close)),
          first_that(RelayStep::ehlo, RelayAnswer::reply("502 5.5.1 what")),
          first_that(RelayStep::starttls, RelayAnswer::reply("454 4.7.0 not now")),
          first_that(RelayStep::auth, RelayAnswer::reply("421 4.7.0 busy", Then::close)),
          first_that(RelayStep::mail, RelayAnswer::reply("421 4.3.2 shutting down", Then::close)),
          without_starttls,
          without_auth};
}

int count_sent(const TestRelay& server, const std::string& verb) {
  int count = 0;
  for (const auto& command : server.commands())
    count += command.find(" " + verb) != std::string::npos ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("of two addresses one that does not serve is skipped, wherever it says so") {
  for (const auto& options : options_that_do_not_serve()) {
    const TwoAddresses rig(options);
    {
      auto relay = rig.relay();
      for (int i = 0; i < 2; ++i)
        CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
              "accepted, counted, 250: 2.0.0 ok: queued as Q1-" + std::to_string(i + 1));
    }
    CHECK(rig.first.connections() == 1);
    CHECK(rig.second.connections() == 1);
    const auto sample = mail_to("").envelope;
    CHECK(rig.relay().check(&sample).fault == smtp::RelayFault::none);
  }
}

TEST_CASE("a refusal of the login or the sender is not asked for at the next address") {
  for (const auto& options : {first_that(RelayStep::auth, RelayAnswer::reply("535 5.7.8 no")),
                              first_that(RelayStep::mail, RelayAnswer::reply("553 5.7.1 not yours"))}) {
    const TwoAddresses rig(options);
    CHECK(rig.relay().deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::unavailable);
    CHECK(rig.first.connections() == 1);
    CHECK(rig.second.connections() == 0);
  }
}

TEST_CASE("if the other address is down, the first one's words are reported, and it is tried again") {
  std::atomic<bool> refuses = true;
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    return refuses && moment.step == RelayStep::ehlo ? RelayAnswer::reply("421 4.7.0 busy", Then::close)
                                                     : RelayAnswer{};
  }});
  const auto port = std::to_string(server.port());
  auto options = impatient();
  options.resolve = {"localhost:" + port + ":127.0.0.1,127.0.0.2"};
  smtp::RelaySession relay(smtp::parse_relay_url("smtp://localhost:" + port), options);
  CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) == "unavailable, not counted, 421: 4.7.0 busy");
  CHECK(server.connections() == 1);
  refuses = false;
  CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
}

TEST_CASE("keywords of EHLO are known in any case") {
  const TestCertificate certificate;
  const TestRelay server({.certificate = &certificate,
                          .offers_starttls = true,
                          .user = "alice",
                          .password = password,
                          .offers_smtputf8 = true,
                          .offers_pipelining = true,
                          .in_lower_case = true});
  smtp::RelayOptions options;
  options.password = password;
  options.ca_file = certificate.certificate();
  smtp::RelaySession relay(url_of(server, "alice"), options);
  auto mail = mail_to("grüße@mail.example");
  mail.envelope.needs_smtputf8 = true;
  CHECK(relay.deliver(mail).verdict == delivery::Verdict::accepted);
  REQUIRE(server.taken().size() == 1);
  CHECK(server.taken()[0].encrypted);
  CHECK(server.taken()[0].user == "alice");
}

TEST_CASE("a connection that is given up while it is opened ends with QUIT") {
  const TestCertificate certificate;
  const auto serving = [&] {
    return TestRelay::Options{
        .certificate = &certificate, .offers_starttls = true, .user = "alice", .password = password};
  };
  auto without_starttls = serving();
  without_starttls.offers_starttls = false;
  auto without_auth = serving();
  without_auth.user = "";
  auto with_another_login = serving();
  with_another_login.mechanisms = "GSSAPI";
  std::vector<TestRelay::Options> rows{without_starttls, without_auth, with_another_login};
  for (const auto& [step, reply] :
       std::vector<std::pair<RelayStep, std::string>>{{RelayStep::greeting, "554 5.7.1 not you"},
                                                      {RelayStep::ehlo, "502 5.5.1 what"},
                                                      {RelayStep::starttls, "454 4.7.0 not now"},
                                                      {RelayStep::auth, "535 5.7.8 no"},
                                                      {RelayStep::auth, "454 4.7.0 later"}}) {
    rows.push_back(serving());
    rows.back().play = TestRelay::at(step, RelayAnswer::reply(reply));
  }
  for (const auto& row : rows) {
    const TestRelay server(row);
    smtp::RelayOptions options;
    options.password = password;
    options.ca_file = certificate.certificate();
    smtp::RelaySession relay(url_of(server, "alice"), options);
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::unavailable);
    CHECK(eventually([&] { return count_sent(server, "QUIT") == 1; }));
    relay.check();
    CHECK(eventually([&] { return count_sent(server, "QUIT") == 2; }));
    CHECK(server.connections() == 2);
  }
}

TEST_CASE(
    "a mail that needs SMTPUTF8 costs no connection where it is not offered, and a sender ends it with QUIT") {
  const TestRelay server;
  smtp::RelaySession relay(url_of(server), {});
  auto mail = mail_to("grüße@mail.example");
  mail.envelope.needs_smtputf8 = true;
  CHECK(relay.deliver(mail).verdict == delivery::Verdict::rejected);
  CHECK(relay.deliver(mail).verdict == delivery::Verdict::rejected);
  CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  CHECK(server.connections() == 1);
  mail.envelope.utf8_sender = "ü@mail.example";
  CHECK(relay.deliver(mail).verdict == delivery::Verdict::unavailable);
  CHECK(eventually([&] { return count_sent(server, "QUIT") == 1; }));
}

TEST_CASE("what greets in another protocol is named, at once") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"* OK IMAP4rev1 ready", "no SMTP server, but one of IMAP: * OK IMAP4rev1 ready"},
      {"+OK POP3 ready", "no SMTP server, but one of POP3: +OK POP3 ready"},
      {"HTTP/1.1 400 Bad Request", "no SMTP server, but one of HTTP: HTTP/1.1 400 Bad Request"},
      {"SSH-2.0-OpenSSH_9.2", "no SMTP server, but one of SSH: SSH-2.0-OpenSSH_9.2"},
      {"hello", "no SMTP server: hello"}};
  const TestCertificate certificate;
  for (const bool implicit : {false, true}) {
    for (const auto& [greeting, text] : rows) {
      const TestRelay server({.play = TestRelay::at(RelayStep::greeting, RelayAnswer::reply(greeting)),
                              .certificate = &certificate,
                              .implicit_tls = implicit});
      smtp::RelayOptions options;
      options.ca_file = certificate.certificate();
      smtp::RelaySession relay(url_of(server), options);
      CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) == "unavailable, not counted, 0: " + text);
      const auto check = relay.check();
      CHECK(check.fault == smtp::RelayFault::no_smtp);
      CHECK(check.reply == text);
    }
  }
}

}  // namespace mailroom::test::opening_test
