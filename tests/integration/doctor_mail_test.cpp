// What the doctor says of the relays and the templates of `mailroom send`.

#include <fmt/format.h>

#include "support/doctor_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/refusing_port.hpp"
#include "support/test_certificate.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::doctor_mail_test {
namespace {

const std::string password = "open sesame 4711";

/// A doctor of a database that `mailroom send` serves, with a password file and a certificate.
struct MailDoctor {
  TestDatabase database;
  TemporaryDirectory files;
  TestCertificate certificate;
  DoctorRig rig{database};

  MailDoctor() {
    rig.environment["MAILROOM_SEND_FROM"] = "Example <no-reply@app.example>";
    rig.environment["MAILROOM_SEND_LINK"] = "https://app.example/{action}?token={token}";
  }

  /// Configures `url`, with a password file of this mode.
  void log_in_to(const std::string& url, unsigned mode = 0600) {
    rig.environment["MAILROOM_SEND_RELAY"] = url;
    rig.environment["MAILROOM_SEND_CA_FILE"] = certificate.certificate();
    rig.environment["MAILROOM_SEND_PASSWORD_FILE"] = files.write("password", password + "\n", mode);
  }
  TestRelay::Options server_for_alice() const {
    return {.certificate = &certificate, .offers_starttls = true, .user = "alice", .password = password};
  }
  std::string relays() const { return summary(rig.examine("relay")); }
  std::string templates() const { return summary(rig.examine("templates")); }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("without send.relay and other keys of send there is nothing to check") {
  const TestDatabase database;
  const DoctorRig rig(database);
  CHECK(summary(rig.examine("relay")) == "ok: not configured");
  CHECK(summary(rig.examine("templates")) == "ok: not configured");
}

TEST_CASE("the doctor reaches each relay, with TLS and authentication as configured, and sends no mail") {
  MailDoctor doctor;
  const TestRelay plain;
  const TestRelay with_login(doctor.server_for_alice());
  doctor.rig.environment["MAILROOM_SEND_HELLO_NAME"] = "client.example";
  doctor.log_in_to(plain.url() + ", " + with_login.url("alice"));
  CHECK(doctor.relays() ==
        fmt::format("ok: 127.0.0.1:{} answers without TLS, since it is on this host, without a user, to EHLO "
                    "client.example; ok: 127.0.0.1:{} answers over TLS, as alice, to EHLO client.example",
                    plain.port(), with_login.port()));
  CHECK(doctor.templates() == "ok: 6 built-in");
  CHECK(plain.taken().empty());
  CHECK(with_login.taken().empty());
  for (const auto& command : with_login.commands())
    CHECK_FALSE(contains(command, "RCPT"));
}

TEST_CASE("the doctor says why a relay takes no mail, in its words, and what to do") {
  MailDoctor doctor;
  const TestCertificate another;
  const RefusingPort closed;
  struct Case {
    std::function<void(TestRelay::Options&)> change;
    std::string reason;
    std::string hint;
  };
  const std::vector<Case> cases{
      {[](auto& options) { options.password = "another"; },
       "does not let the user in: 535 5.7.8 wrong user or password", "write the password of alice into "},
      {[](auto& options) { options.user = ""; }, "does not let the user in: the relay offers no AUTH",
       "remove the user from send.relay"},
      {[](auto& options) { options.offers_starttls = false; },
       "cannot be used over TLS: the relay does not offer STARTTLS", "use smtps://"},
      {[&](auto& options) { options.certificate = &another; },
       "has a certificate that is not accepted: ", "set send.ca_file"},
      {[](auto& options) {
         options.play = TestRelay::at(RelayStep::greeting,
                                      RelayAnswer::reply("554 5.7.1 not you", RelayAnswer::Then::close));
       },
       "takes no mail from this host: 554 5.7.1 not you", "ask the operator of the relay"},
      {[](auto& options) {
         options.play = TestRelay::at(RelayStep::auth, RelayAnswer::reply("454 4.7.0 Temporary failure"));
       },
       "does not let the user in now: 454 4.7.0 Temporary failure", "the senders try it again by themselves"},
      {[](auto& options) {
         options.play = TestRelay::at(RelayStep::auth,
                                      RelayAnswer::reply("535 5.7.139 SmtpClientAuthentication is disabled"));
       },
       "does not let the user in: 535 5.7.139 ", "let the provider allow alice to use SMTP AUTH"},
      {[](auto& options) {
         options.play = TestRelay::at(RelayStep::mail, RelayAnswer::reply("421 4.3.2 shutting down"));
       },
       "takes no mail now: 421 4.3.2 shutting down", "the senders try it again by themselves"},
      {[](auto& options) {
         options.play = TestRelay::at(RelayStep::greeting, RelayAnswer::reply("* OK IMAP4rev1"));
       },
       "is no relay: no SMTP server, but one of IMAP: * OK IMAP4rev1", "587 for smtp://"}};
  for (const auto& [change, reason, hint] : cases) {
    auto options = doctor.server_for_alice();
    change(options);
    const TestRelay server(options);
    doctor.log_in_to(server.url("alice"));
    const auto findings = doctor.rig.examine("relay");
    INFO(summary(findings));
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
    CHECK(contains(findings[0].reason, fmt::format("127.0.0.1:{} {}", server.port(), reason)));
    CHECK(contains(findings[0].hint, hint));
    CHECK(server.taken().empty());
  }
  doctor.log_in_to(fmt::format("smtp://127.0.0.1:{}", closed.port()));
  CHECK(contains(doctor.relays(), fmt::format("failure: 127.0.0.1:{} cannot be reached: ", closed.port())));
  CHECK(doctor::judge(doctor.rig.examine("relay")) == ExitCode::unusable);
}

TEST_CASE("a relay that answers the doctor, and has taken no mails of the senders, may take them again") {
  MailDoctor doctor;
  const TestRelay server;
  doctor.log_in_to(server.url());
  const auto connection = doctor.database.connect();
  migrate(*connection);
  connection->run(fmt::format(
      "INSERT INTO mailroom_sinks VALUES ('127.0.0.1:{}', 3, now() - interval '1 h', now(), now() + interval "
      "'1 min', '550 5.1.0 Sender denied')",
      server.port()));
  const auto findings = doctor.rig.examine("relay");
  REQUIRE(findings.size() == 2);
  CHECK(contains(findings[1].reason, "answers this check; before, it has taken no mail of the senders for "));
  CHECK(contains(findings[1].reason, "after 3 failures, the last: 550 5.1.0 Sender denied"));
  CHECK(contains(findings[1].hint, "it may take mails again: the senders try it in "));
  connection->run("UPDATE mailroom_sinks SET probe_at = now()");
  CHECK(contains(doctor.rig.examine("relay").at(1).hint, "as soon as one runs and a mail is due"));
}

TEST_CASE("the doctor says of which relay a power cut loses what it has taken") {
  MailDoctor doctor;
  const TestRelay relay({.play = [](const RelayMoment& moment) {
    return moment.step == RelayStep::greeting ? RelayAnswer::reply("220 mx.example ESMTP OpenSMTPD")
                                              : RelayAnswer{};
  }});
  doctor.log_in_to(relay.url());
  CHECK(contains(
      doctor.relays(),
      fmt::format("warning: 127.0.0.1:{} is OpenSMTPD, which answers 250 before a mail is on its disk",
                  relay.port())));
}

TEST_CASE("one relay that fails does not keep the doctor from the next") {
  MailDoctor doctor;
  const RefusingPort closed;
  const TestRelay open;
  doctor.log_in_to(fmt::format("smtp://127.0.0.1:{},{}", closed.port(), open.url()));
  const auto findings = doctor.rig.examine("relay");
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[1].verdict == doctor::CheckVerdict::ok);
}

TEST_CASE("the doctor checks the password file of the relay") {
  MailDoctor doctor;
  const TestRelay server(doctor.server_for_alice());
  doctor.log_in_to(server.url("alice"), 0644);
  const auto path = doctor.rig.environment["MAILROOM_SEND_PASSWORD_FILE"];
  auto findings = doctor.rig.examine("relay");
  REQUIRE(findings.size() == 1);
  CHECK(summary(findings) == "failure: everyone can read the password file " + path);
  REQUIRE(findings[0].fix == std::vector<std::string>{"chmod 640 " + path});
  CHECK(server.connections() == 0);

  const OperatorRig person(doctor.database);
  CHECK(person.type(findings[0].fix.front()).status == 0);
  CHECK(contains(doctor.relays(), "ok: "));

  doctor.rig.environment["MAILROOM_SEND_PASSWORD_FILE"] = path + ".missing";
  CHECK(contains(doctor.relays(), "failure: cannot read the password file " + path + ".missing"));
  doctor.rig.environment.erase("MAILROOM_SEND_PASSWORD_FILE");
  CHECK(doctor.relays() == "failure: send.password_file is not set");
}

TEST_CASE("the doctor shows no password, whatever a relay or the configuration says") {
  MailDoctor doctor;
  auto options = doctor.server_for_alice();
  options.play = TestRelay::at(RelayStep::auth, RelayAnswer::reply("535 no: " + password));
  const TestRelay server(options);
  doctor.log_in_to(server.url("alice"));
  CHECK(contains(doctor.relays(), "535 no: ***"));
  for (const auto* url : {"smtp://alice:sesame4711@relay.example", "smtp:/alice:sesame4711@relay.example",
                          "alice:sesame4711@relay.example"}) {
    doctor.rig.environment["MAILROOM_SEND_RELAY"] = url;
    for (const auto& finding : doctor.rig.examine("relay")) {
      CHECK(finding.verdict == doctor::CheckVerdict::failure);
      CHECK_FALSE(contains(finding.reason + finding.hint, "sesame"));
    }
  }
}

TEST_CASE("the doctor checks the sender, the link and the templates") {
  MailDoctor doctor;
  const TestRelay server;
  doctor.rig.environment["MAILROOM_SEND_RELAY"] = server.url();
  const auto directory = doctor.files.path() / "templates";
  std::filesystem::create_directory(directory);
  doctor.rig.environment["MAILROOM_SEND_TEMPLATES"] = directory.string();
  doctor.files.write("templates/recovery.subject", "Hello\n");
  CHECK(doctor.templates() == "ok: 1 from " + directory.string() + ", 5 built-in");
  doctor.files.write("templates/activation.sujbect", "Hello\n");
  CHECK(doctor.templates() == fmt::format("warning: {}/activation.sujbect is not used; did you mean "
                                          "activation.subject?",
                                          directory.string()));
  doctor.files.write("templates/recovery.txt", "{{lnik}}\n");
  const auto broken = doctor.rig.examine("templates");
  CHECK(contains(summary(broken), "failure: " + directory.string() + "/recovery.txt:1: "));
  CHECK(doctor::judge(broken) == ExitCode::configuration);

  doctor.rig.environment.erase("MAILROOM_SEND_TEMPLATES");
  doctor.rig.environment["MAILROOM_SEND_LINK"] = "https://app.example/{action}";
  CHECK(contains(doctor.templates(), "failure: send.link (from MAILROOM_SEND_LINK): "));
  doctor.rig.environment["MAILROOM_SEND_FROM"] = "Example";
  CHECK(contains(doctor.templates(), "failure: send.from (from MAILROOM_SEND_FROM): "));
  doctor.rig.environment.erase("MAILROOM_SEND_FROM");
  doctor.rig.environment.erase("MAILROOM_SEND_LINK");
  CHECK(doctor.templates() == "failure: send.from is not set");
  // Only a mail with a link needs send.link.
  doctor.rig.environment["MAILROOM_SEND_FROM"] = "Example <no-reply@app.example>";
  CHECK(doctor.templates() == "ok: 6 built-in; send.link is not set: a mail with a link waits until it is");
  insert_accounts(*doctor.database.connect(), 1);
  CHECK(doctor.templates() ==
        "failure: send.link is not set, and mails with a link wait in the queue mailroom, which takes "
        "activation,recovery");
  doctor.rig.environment.erase("MAILROOM_SEND_FROM");
  // Templates alone, for mailroom template: nothing is sent.
  doctor.rig.environment.erase("MAILROOM_SEND_RELAY");
  doctor.rig.environment["MAILROOM_SEND_TEMPLATES"] = directory.string();
  std::filesystem::remove(directory / "recovery.txt");
  CHECK(contains(doctor.templates(), "warning: "));
}

}  // namespace mailroom::test::doctor_mail_test
