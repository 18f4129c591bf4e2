// What the doctor says of how bounces come back, for each relay.

#include "support/doctor_rig.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::doctor_bounces_test {
namespace {

struct BouncesRig : DatabaseRig {
  /// The check alone: others would connect to the relays.
  std::string said(const std::string& relays, const config::EnvironmentVariables& more = {}) {
    config::EnvironmentVariables all{{"MAILROOM_SEND_FROM", "no-reply@app.example"},
                                     {"MAILROOM_SEND_RELAY", relays}};
    for (const auto& [name, text] : more)
      all[name] = text;
    doctor::Subject subject;
    subject.settings = config::load_settings({}, all);
    subject.settings_complete = true;
    subject.connection = database.connect("doctor");
    subject.schema_usable = subject.has_tables = true;
    return summary(doctor::check_bounces(subject));
  }
};

}  // namespace

TEST_CASE("the doctor says for each relay by which way bounces come back, and what is not set for it") {
  struct WayRow {
    std::string relay;
    config::EnvironmentVariables set;
    std::string said;
  };
  const std::string events = " tells by events what came back";
  const auto unset = [&](const std::string& title, const std::string& key) {
    return title + events + ", and " + key + " is not set";
  };
  const std::vector<WayRow> rows{
      {"smtp://smtp.postmarkapp.com:587", {}, unset("Postmark", "bounce.postmark_secret_files")},
      {"smtp://SMTP.Mailgun.org", {}, unset("Mailgun", "bounce.mailgun_secret_files")},
      {"smtp://smtp.eu.mailgun.org", {}, unset("Mailgun", "bounce.mailgun_secret_files")},
      {"smtps://apikey@smtp.sendgrid.net", {}, unset("SendGrid", "bounce.sendgrid_key_files")},
      {"smtp://smtp-relay.brevo.com", {}, unset("Brevo", "bounce.brevo_secret_files")},
      {"smtp://in-v3.mailjet.com", {}, unset("Mailjet", "bounce.mailjet_secret_files")},
      {"smtp://smtp.sparkpostmail.com", {}, unset("SparkPost", "bounce.sparkpost_secret_files")},
      {"resend://", {}, unset("Resend", "bounce.resend_secret_files")},
      {"smtp://smtp.postmarkapp.com",
       {{"MAILROOM_BOUNCE_POSTMARK_SECRET_FILES", "/s"}},
       "Postmark" + events + ", and nothing has read any"},
      {"resend://",
       {{"MAILROOM_BOUNCE_RESEND_SECRET_FILES", "/s"}},
       "Resend" + events + ", and nothing has read any"},
      {"ses://eu-west-1", {}, "Amazon SES" + events + ", and nothing has read any"},
      // The API alone tells by which id Resend knows a mail.
      {"smtp://smtp.resend.com",
       {{"MAILROOM_BOUNCE_RESEND_SECRET_FILES", "/s"}},
       "events of Resend show whose mail they are about only if its API took it, and resend:// in send.relay is "
       "not set"},
      {"smtp://mail.corp.example",
       {},
       "bounces come back as mails to no-reply@app.example, and nothing has read any"},
      {"smtp://mail.corp.example",
       {{"MAILROOM_SEND_BOUNCE_ADDRESS", "bounce+{id}@app.example"}},
       "bounces come back as mails to bounce+{id}@app.example, and nothing has read any"},
      // The relay forwards to a provider.
      {"smtp://mail.corp.example",
       {{"MAILROOM_SEND_PROVIDER", "mailgun"}},
       unset("Mailgun", "bounce.mailgun_secret_files")},
      {"smtp://smtp.mailgun.org.evil.example", {}, "bounces come back as mails"},
  };
  BouncesRig rig;
  for (const auto& row : rows) {
    const auto said = rig.said(row.relay, row.set);
    INFO(row.relay << ": " << said);
    CHECK(said.starts_with("warning: "));
    CHECK(said.find(row.said) != std::string::npos);
  }
  // Each relay of a list has its own way.
  const auto both = rig.said("smtp://smtp.postmarkapp.com,smtp://mail.corp.example");
  CHECK(both.find("smtp://smtp.postmarkapp.com: Postmark tells by events") != std::string::npos);
  CHECK(both.find("smtp://mail.corp.example: bounces come back as mails") != std::string::npos);
  CHECK(rig.said("") == "ok: not configured");
}

TEST_CASE("bounces that somebody reads, or has read, are no warning of the doctor") {
  BouncesRig rig;
  const std::string relay = "smtp://mail.corp.example";
  REQUIRE(rig.said(relay).starts_with("warning: "));
  rig.connection->run("SET application_name = 'mailroom bounce ada@host'");
  CHECK(rig.said(relay) == "ok: " + relay + ": bounces come back as mails to no-reply@app.example");
  // A secret that is missing keeps events out, whoever reads.
  CHECK(rig.said("smtp://smtp.mailgun.org").starts_with("warning: "));
  rig.connection->run("RESET application_name");
  REQUIRE(rig.said(relay).starts_with("warning: "));
  rig.connection->run("SELECT mailroom_send(ARRAY['a@mail.example'], subject => 's', text => 't')");
  rig.connection->run(
      "SELECT mailroom_report('{\"address\": \"a@mail.example\", \"kind\": \"soft\", \"reason\": \"full\", \"token\": 1}')");
  CHECK(rig.said(relay) == "ok: " + relay + ": bounces come back as mails to no-reply@app.example");
}

}  // namespace mailroom::test::doctor_bounces_test
