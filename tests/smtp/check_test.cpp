// A check of a relay: everything that comes before a mail, and no mail.

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/refusing_port.hpp"
#include "support/subprocess.hpp"
#include "support/test_certificate.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::check_test {
namespace {

const std::string password = "open sesame 4711";

smtp::RelayOptions login_with(const TestCertificate& certificate) {
  smtp::RelayOptions options;
  options.password = password;
  options.ca_file = certificate.certificate();
  return options;
}

TestRelay::Options server_for_alice(const TestCertificate& certificate) {
  return {.certificate = &certificate, .offers_starttls = true, .user = "alice", .password = password};
}

int count_sent(const TestRelay& server, const std::string& verb) {
  int count = 0;
  for (const auto& command : server.commands())
    count += command.find(" " + verb) != std::string::npos ? 1 : 0;
  return count;
}

bool has_sent(const TestRelay& server, const std::string& verb) {
  return count_sent(server, verb) > 0;
}

/// Fault, code and reply.
std::string text_of(const smtp::RelayCheck& check) {
  const std::vector<std::string> names{"none",         "unreachable", "silent",      "no SMTP",
                                       "no STARTTLS",  "tls",         "certificate", "no AUTH",
                                       "no mechanism", "login",       "wants login", "wants TLS",
                                       "busy",         "no SMTPUTF8", "sender",      "refused"};
  return names.at(static_cast<std::size_t>(check.fault)) + ", " + std::to_string(check.code) + ": " +
         check.reply;
}

std::string check(const TestRelay& server, const smtp::RelayOptions& options = {},
                  const std::string& user = {}) {
  return text_of(smtp::RelaySession(url_of(server, user), options).check());
}

}  // namespace

TEST_CASE("a check connects and says NOOP, and sends no mail") {
  const TestRelay server;
  {
    smtp::RelaySession relay(url_of(server), {});
    const auto result = relay.check();
    CHECK(text_of(result) == "none, 250: ok");
    CHECK_FALSE(result.encrypted);
    // The same relay delivers afterwards.
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
    CHECK(text_of(relay.check()) == "none, 250: ok");
  }
  CHECK(server.taken().size() == 1);
  CHECK(count_sent(server, "NOOP") == 2);
  CHECK(count_sent(server, "MAIL") == 1);
  CHECK(eventually([&] { return has_sent(server, "QUIT"); }));
}

TEST_CASE("a check authenticates, and only over TLS") {
  const TestCertificate certificate;
  const TestCertificate another;
  const auto options = login_with(certificate);
  const TestRelay server(server_for_alice(certificate));
  smtp::RelaySession relay(url_of(server, "alice"), options);
  const auto result = relay.check();
  CHECK(text_of(result) == "none, 250: ok");
  CHECK(result.encrypted);
  CHECK(has_sent(server, "AUTH"));
  CHECK_FALSE(has_sent(server, "MAIL"));

  auto plain = server_for_alice(certificate);
  plain.offers_starttls = false;
  const TestRelay without_tls(plain);
  CHECK(check(without_tls, options, "alice") ==
        "no STARTTLS, 0: the relay does not offer STARTTLS, and TLS is required");
  CHECK_FALSE(has_sent(without_tls, "AUTH"));

  const TestRelay untrusted(server_for_alice(another));
  CHECK(check(untrusted, options, "alice").find("certificate, 0: ") == 0);
  CHECK_FALSE(has_sent(untrusted, "AUTH"));

  const TestRelay speaks_no_tls;
  auto tls_url = url_of(speaks_no_tls);
  tls_url.implicit_tls = true;
  CHECK(text_of(smtp::RelaySession(tls_url, options).check()).find("tls, 0: ") == 0);
}

TEST_CASE("a check reports what the relay says of a login, without the password") {
  const TestCertificate certificate;
  auto options = server_for_alice(certificate);
  options.play = TestRelay::at(RelayStep::auth, RelayAnswer::reply("535 5.7.8 no: " + password));
  CHECK(check(TestRelay(options), login_with(certificate), "alice") == "login, 535: 5.7.8 no: ***");
  options = server_for_alice(certificate);
  options.user = "";
  CHECK(check(TestRelay(options), login_with(certificate), "alice") ==
        "no AUTH, 0: the relay offers no AUTH, and a user is configured");
}

TEST_CASE("a check names the sender, and no recipient") {
  auto sample = mail_to("").envelope;
  const TestRelay server;
  CHECK(text_of(smtp::RelaySession(url_of(server), {}).check(&sample)) == "none, 250: ok");
  CHECK(has_sent(server, "MAIL FROM:<sender@mail.example>"));
  CHECK(has_sent(server, "RSET"));
  CHECK_FALSE(has_sent(server, "RCPT"));

  const TestRelay refusing(
      {.play = TestRelay::at(RelayStep::mail, RelayAnswer::reply("553 5.7.1 not yours"))});
  CHECK(text_of(smtp::RelaySession(url_of(refusing), {}).check(&sample)) == "sender, 553: 5.7.1 not yours");

  const TestRelay closing({.play = TestRelay::at(RelayStep::mail, RelayAnswer::reply("421 4.3.2 stopping"))});
  CHECK(text_of(smtp::RelaySession(url_of(closing), {}).check(&sample)) == "busy, 421: 4.3.2 stopping");

  sample.needs_smtputf8 = true;
  sample.utf8_sender = "ü@mail.example";
  CHECK(text_of(smtp::RelaySession(url_of(server), {}).check(&sample)) ==
        "no SMTPUTF8, 0: the relay does not offer SMTPUTF8, which the sender ü@mail.example needs");
  const TestRelay offering({.offers_smtputf8 = true});
  CHECK(text_of(smtp::RelaySession(url_of(offering), {}).check(&sample)) == "none, 250: ok");
}

TEST_CASE("a check tells a relay that takes the connection and says nothing from one that is not there") {
  const auto closing = TestRelay::at(RelayStep::greeting, RelayAnswer::nothing(RelayAnswer::Then::close));
  CHECK(check(TestRelay({.play = closing})) ==
        "silent, 0: the relay closed the connection before its greeting");
  const auto hanging = TestRelay::at(RelayStep::greeting, RelayAnswer::nothing(RelayAnswer::Then::hang));
  CHECK(
      check(TestRelay({.play = hanging}), impatient()) ==
      "silent, 0: connected, but no greeting within 1s; a port that speaks TLS from the first byte needs smtps://");
}

TEST_CASE("a check tells a relay that refuses from one that is not there") {
  const auto refusing =
      TestRelay::at(RelayStep::greeting, RelayAnswer::reply("554 5.7.1 not you", RelayAnswer::Then::close));
  CHECK(check(TestRelay({.play = refusing})) == "refused, 554: 5.7.1 not you");
  const auto closing = TestRelay::at(RelayStep::ehlo, RelayAnswer::nothing(RelayAnswer::Then::close));
  CHECK(check(TestRelay({.play = closing})).find("refused, 0: ") == 0);
  const auto hanging = TestRelay::at(RelayStep::ehlo, RelayAnswer::nothing(RelayAnswer::Then::hang));
  CHECK(check(TestRelay({.play = hanging}), impatient()) == "refused, 0: no reply to EHLO within 1s");
  const RefusingPort refusing_port;
  const auto url = smtp::parse_relay_url("smtp://127.0.0.1:" + std::to_string(refusing_port.port()));
  CHECK(text_of(smtp::RelaySession(url, {}).check()).find("unreachable, 0: ") == 0);
}

}  // namespace mailroom::test::check_test
