// Authentication: never without TLS, never silently left out, and never in a reply.

#include "base/error.hpp"
#include "carriers/smtp/relay/configured_relays.hpp"
#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/test_certificate.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::login_test {
namespace {

const std::string password = "open sesame 4711";

/// A relay with STARTTLS, as which nobody else can pose.
struct LoginRig {
  TestCertificate certificate;

  TestRelay::Options server(const std::string& user = "alice", const std::string& known_password = password) {
    return {.certificate = &certificate, .offers_starttls = true, .user = user, .password = known_password};
  }
  smtp::RelayOptions client() const {
    smtp::RelayOptions options;
    options.password = password;
    options.ca_file = certificate.certificate();
    return options;
  }
};

bool has_sent(const TestRelay& server, const std::string& verb) {
  for (const auto& command : server.commands()) {
    if (command.find(" " + verb) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a user authenticates once per connection, over TLS also on this host") {
  LoginRig rig;
  for (const bool implicit : {false, true}) {
    auto options = rig.server();
    options.implicit_tls = implicit;
    options.offers_starttls = !implicit;
    const TestRelay server(options);
    smtp::RelaySession relay(url_of(server, "alice"), rig.client());
    for (int i = 0; i < 2; ++i)
      CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
    REQUIRE(server.taken().size() == 2);
    CHECK(server.taken()[1].user == "alice");
    CHECK(server.taken()[1].encrypted);
    CHECK(server.connections() == 1);
  }
}

TEST_CASE("credentials never go over a connection without TLS") {
  const TestCertificate another;
  LoginRig rig;
  auto plain = rig.server();
  plain.offers_starttls = false;
  auto untrusted = rig.server();
  untrusted.certificate = &another;
  for (const auto& options : {plain, untrusted}) {
    const TestRelay server(options);
    smtp::RelaySession relay(url_of(server, "alice"), rig.client());
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::unavailable);
    CHECK_FALSE(has_sent(server, "AUTH"));
    CHECK_FALSE(has_sent(server, "MAIL"));
  }
}

TEST_CASE("a relay that offers no AUTH gets no mail if a user is configured") {
  LoginRig rig;
  const TestRelay server(rig.server(""));
  smtp::RelaySession relay(url_of(server, "alice"), rig.client());
  for (int i = 0; i < 2; ++i) {
    CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
          "unavailable, not counted, 0: the relay offers no AUTH, and a user is configured");
  }
  CHECK(server.taken().empty());
  CHECK_FALSE(has_sent(server, "MAIL"));
}

TEST_CASE("a relay that refuses the credentials is unavailable") {
  LoginRig rig;
  const TestRelay server(rig.server("alice", "another"));
  smtp::RelaySession relay(url_of(server, "alice"), rig.client());
  CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
        "unavailable, not counted, 535: 5.7.8 wrong user or password");
  CHECK_FALSE(has_sent(server, "MAIL"));
}

TEST_CASE("a temporary refusal of AUTH is no request for a lower rate") {
  LoginRig rig;
  auto options = rig.server();
  options.play = TestRelay::at(RelayStep::auth, RelayAnswer::reply("454 4.7.0 later"));
  const TestRelay server(options);
  smtp::RelaySession relay(url_of(server, "alice"), rig.client());
  const auto delivery = relay.deliver(mail_to("user@mail.example"));
  CHECK(text_of(delivery) == "unavailable, not counted, 454: 4.7.0 later");
  CHECK_FALSE(delivery.throttled);
}

TEST_CASE("a password that the relay repeats is masked") {
  // The base64 of the password, and of NUL alice NUL password.
  const std::string login = "b3BlbiBzZXNhbWUgNDcxMQ";
  const std::string plain = "AGFsaWNlAG9wZW4gc2VzYW1lIDQ3MTE";
  const auto answer = RelayAnswer::reply("535 no: " + password + " " + login + "== " + plain + "=");
  LoginRig rig;
  auto options = rig.server();
  options.play = TestRelay::at(RelayStep::auth, answer);
  const TestRelay server(options);
  smtp::RelaySession relay(url_of(server, "alice"), rig.client());
  CHECK(relay.deliver(mail_to("user@mail.example")).reply == "no: *** ***== ***=");
}

TEST_CASE("a user without a password, a name that is none and a missing CA file are refused") {
  const auto message = [](const std::string& url, const smtp::RelayOptions& options) -> std::string {
    try {
      const smtp::RelaySession relay(smtp::parse_relay_url(url), options);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::configuration);
      CHECK_FALSE(error.hint().empty());
      return error.what();
    }
    return "no error";
  };
  auto named = smtp::RelayOptions();
  named.hello_name = "mail example";
  auto trusting = smtp::RelayOptions();
  trusting.ca_file = "/nonexistent/ca.pem";
  CHECK(message("smtp://alice@localhost", smtp::RelayOptions()) ==
        "the relay localhost:25 has a user, and there is no password");
  CHECK(message("smtp://localhost", named) == "'mail example' is no name for EHLO");
  CHECK(message("smtp://localhost", trusting) == "cannot read the CA file /nonexistent/ca.pem");
  CHECK(message("smtp://localhost", smtp::RelayOptions()) == "no error");
}

TEST_CASE("EHLO has the configured name, exactly so, and else the full name or the address of this host") {
  for (const std::string name : {"mail.example", "[192.0.2.1]", "[IPv6:2001:db8::1]", ""}) {
    const TestRelay server;
    auto options = smtp::RelayOptions();
    options.hello_name = name;
    smtp::RelaySession relay(url_of(server), options);
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
    CHECK(server.commands().front() == "1 EHLO " + (name.empty() ? smtp::own_hello_name() : name));
  }
}

TEST_CASE("a mechanism that the relay refuses is followed by the next, on the same connection") {
  LoginRig rig;
  for (const std::string works : {"PLAIN", "LOGIN"}) {
    auto options = rig.server();
    options.mechanisms = "GSSAPI NTLM CRAM-MD5 LOGIN PLAIN";
    options.works = works;
    const TestRelay server(options);
    smtp::RelaySession relay(url_of(server, "alice"), rig.client());
    CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
    REQUIRE(server.taken().size() == 1);
    CHECK(server.taken()[0].user == "alice");
    CHECK(server.connections() == 1);
    CHECK(has_sent(server, "AUTH PLAIN "));
    CHECK_FALSE(has_sent(server, "AUTH CRAM-MD5"));
  }
}

TEST_CASE("where no login can begin, the offer is named") {
  LoginRig rig;
  auto options = rig.server();
  options.mechanisms = "GSSAPI XOAUTH2";
  const TestRelay server(options);
  smtp::RelaySession relay(url_of(server, "alice"), rig.client());
  CHECK(
      text_of(relay.deliver(mail_to("user@mail.example"))) ==
      "unavailable, not counted, 0: the relay offers AUTH GSSAPI XOAUTH2 only, and mailroom knows PLAIN, LOGIN, "
      "CRAM-MD5; with send.token_file or send.token_command OAUTHBEARER, XOAUTH2");
  CHECK_FALSE(has_sent(server, "AUTH"));
}

TEST_CASE("an access token logs in, and a kept one that is refused is fetched again") {
  LoginRig rig;
  auto options = rig.server();
  options.mechanisms = "PLAIN XOAUTH2";
  options.token = "second";
  const TestRelay server(options);
  auto client = rig.client();
  int fetched = 0;
  client.tokens = std::make_shared<smtp::TokenSource>(
      [&] { return smtp::AccessToken{.text = ++fetched == 1 ? "first" : "second"}; }, true);
  client.tokens->token(std::chrono::steady_clock::now());
  smtp::RelaySession relay(url_of(server, "alice"), client);
  CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  CHECK(fetched == 2);
  CHECK(server.connections() == 1);
  CHECK_FALSE(has_sent(server, "AUTH PLAIN"));
}

TEST_CASE("a token that cannot be had, or is refused, makes the relay unavailable") {
  LoginRig rig;
  auto options = rig.server();
  options.mechanisms = "XOAUTH2";
  options.token = "right";
  const TestRelay server(options);
  auto client = rig.client();
  client.tokens = std::make_shared<smtp::TokenSource>(
      []() -> smtp::AccessToken { throw Error(ExitCode::configuration, "no token today"); }, true);
  CHECK(text_of(smtp::RelaySession(url_of(server, "alice"), client).deliver(mail_to("user@mail.example"))) ==
        "unavailable, not counted, 0: no token today");
  client.tokens =
      std::make_shared<smtp::TokenSource>([] { return smtp::AccessToken{.text = "stale-token"}; }, false);
  CHECK(text_of(smtp::RelaySession(url_of(server, "alice"), client).deliver(mail_to("user@mail.example"))) ==
        "unavailable, not counted, 535: 5.7.8 wrong user or password");
  CHECK(server.taken().empty());
}

}  // namespace mailroom::test::login_test
