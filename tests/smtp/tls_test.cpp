// TLS: required, checked, and never left out.

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/test_certificate.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::tls_test {
namespace {

smtp::RelayOptions with_tls(const std::string& ca_file) {
  smtp::RelayOptions options;
  options.tls_on_loopback = true;
  options.ca_file = ca_file;
  return options;
}

/// Delivers to a server that must not get the mail, and returns why it did not.
std::string refusal(const TestRelay& server, const smtp::RelayOptions& options) {
  smtp::RelaySession relay(url_of(server), options);
  const auto delivery = relay.deliver(mail_to("user@mail.example"));
  CHECK(delivery.verdict == delivery::Verdict::unavailable);
  CHECK_FALSE(delivery.counts());
  CHECK(server.taken().empty());
  for (const auto& command : server.commands())
    CHECK(command.find("MAIL") == std::string::npos);
  return delivery.reply;
}

}  // namespace

TEST_CASE("mails go over STARTTLS or smtps, on one connection") {
  const TestCertificate certificate;
  for (const bool implicit : {false, true}) {
    const TestRelay server({.certificate = &certificate,
                            .implicit_tls = implicit,
                            .offers_starttls = !implicit,
                            .offers_pipelining = true});
    smtp::RelaySession relay(url_of(server), with_tls(certificate.certificate()));
    for (int i = 0; i < 3; ++i)
      CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
            "accepted, counted, 250: 2.0.0 ok: queued as Q1-" + std::to_string(i + 1));
    REQUIRE(server.taken().size() == 3);
    CHECK(server.taken()[2].encrypted);
    CHECK(server.taken()[2].message == test_message);
    CHECK(server.connections() == 1);
  }
}

TEST_CASE("a relay without STARTTLS gets no mail where TLS is required") {
  const TestCertificate certificate;
  const TestRelay server;
  CHECK(refusal(server, with_tls(certificate.certificate())) ==
        "the relay does not offer STARTTLS, and TLS is required");
}

TEST_CASE("only the names of this host are trusted without TLS") {
  const TestRelay server;
  auto url = url_of(server);
  // Linux connects to this host, but the address is not one of its loopback addresses.
  url.host = "0.0.0.0";
  smtp::RelaySession relay(url, {});
  CHECK(text_of(relay.deliver(mail_to("user@mail.example"))) ==
        "unavailable, not counted, 0: the relay does not offer STARTTLS, and TLS is required");
  CHECK(server.connections() == 1);
  CHECK(server.taken().empty());
}

TEST_CASE("a relay that refuses STARTTLS gets no mail") {
  const TestCertificate certificate;
  const TestRelay server({.play = TestRelay::at(RelayStep::starttls, RelayAnswer::reply("454 4.7.0 not now")),
                          .certificate = &certificate,
                          .offers_starttls = true});
  CHECK(refusal(server, with_tls(certificate.certificate())) == "4.7.0 not now");
}

TEST_CASE("a certificate that has expired, or is of another host or issuer, is refused") {
  const TestCertificate sound;
  TestCertificate::Options old;
  old.valid_from = -7200;
  old.valid_until = -3600;
  TestCertificate::Options foreign;
  foreign.names = "DNS:other.example,IP:127.0.0.2";
  const TestCertificate expired(old);
  const TestCertificate other(foreign);
  struct CertificateRow {
    const TestCertificate& certificate;
    std::string ca_file;
    std::string reason;
  };
  const std::vector<CertificateRow> rows{
      {expired, expired.certificate(), "certificate has expired"},
      {other, other.certificate(), "no alternative certificate subject name matches"},
      {sound, other.certificate(), "certificate"},
      {sound, "", "certificate"},
  };
  for (const auto& row : rows) {
    for (const bool implicit : {false, true}) {
      const TestRelay server(
          {.certificate = &row.certificate, .implicit_tls = implicit, .offers_starttls = !implicit});
      const auto reason = refusal(server, with_tls(row.ca_file));
      INFO(reason);
      CHECK(reason.find(row.reason) != std::string::npos);
    }
  }
}

TEST_CASE("a loopback relay needs no TLS, even if it offers it with a certificate of its own") {
  const TestCertificate certificate;
  const TestRelay server({.certificate = &certificate, .offers_starttls = true});
  smtp::RelaySession relay(url_of(server), {});
  CHECK(relay.deliver(mail_to("user@mail.example")).verdict == delivery::Verdict::accepted);
  CHECK_FALSE(server.taken().at(0).encrypted);
}

}  // namespace mailroom::test::tls_test
