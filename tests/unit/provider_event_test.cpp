// What Postmark, Mailgun, SendGrid, Brevo, Mailjet, SparkPost and scripts say of mails: the forms are those
// of recorded events, with what differs put in.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "bounce/provider.hpp"
#include "support/bounce_text.hpp"
#include "support/catch.hpp"

namespace mailroom::test::provider_event_test {
namespace {

using Json = nlohmann::json;

constexpr auto id = "42-k3x9q2mh7d";

struct Row {
  Json more;             ///< put into the sample
  std::string expected;  ///< recipients_of(), `nothing`, or the name of an unknown kind
};

std::string read_as(const Json& event, const char* provider) {
  const auto read = bounce::read_events(plain_json(event), *bounce::find_provider(provider));
  INFO(plain_json(event));
  CHECK(read.problem.empty());
  if (!read.unknown.empty()) return read.unknown.front();
  if (read.events.empty()) return "nothing";
  const auto& bounce = read.events.front().bounce;
  CHECK(bounce.envelope_id == id);
  CHECK(bounce.mail.sent_at);
  // By its form it is of the same provider.
  const auto found = bounce::read_events(plain_json(event));
  REQUIRE(found.events.size() == 1);
  CHECK(found.events.front().bounce.event == bounce.event);
  return recipients_of(bounce);
}

void check_rows(const Json& sample, const std::vector<Row>& rows, const char* provider,
                Json& (*place)(Json& event)) {
  for (const auto& [more, expected] : rows) {
    auto event = sample;
    place(event).update(more);
    CHECK(read_as(event, provider) == expected);
  }
}

Json& itself(Json& event) {
  return event;
}
Json& event_data(Json& event) {
  return event["event-data"];
}
Json& message_event(Json& event) {
  return event["msys"]["message_event"];
}

const Json postmark = parse_json(R"({
  "RecordType": "Bounce", "ID": 901542550, "Type": "HardBounce", "TypeCode": 1, "ServerID": 23, "Name": "Hard bounce",
  "MessageID": "2706ee8a-737c-4285-b032-ccd317af53ed", "Tag": "", "MessageStream": "outbound",
  "Description": "The server was unable to deliver your message (ex: unknown user, mailbox not found).",
  "Details": "smtp;550 5.1.1 The email account that you tried to reach does not exist.", "Email": "Ada@mail.example",
  "From": "no-reply@app.example", "BouncedAt": "2026-11-27T16:28:50.3963933-04:00", "DumpAvailable": true, "Inactive": true,
  "CanActivate": true, "Subject": "x", "Metadata": {"mailroom": "42-k3x9q2mh7d"}})");

const Json mailgun = parse_json(R"({
  "signature": {"timestamp": "1795000000", "token": "651869375b9df3c98fc15c4889b102119add1235c38fc92824", "signature": "00"},
  "event-data": {"event": "failed", "severity": "permanent", "reason": "bounce", "id": "hTWCTD81RtiDN", "log-level": "error",
    "timestamp": 1795000000.389832, "recipient": "ada@mail.example", "user-variables": {"mailroom": "42-k3x9q2mh7d"},
    "message": {"headers": {"to": "Ada <ada@mail.example>", "message-id": "mailroom.k.42.mailroom@app.example", "from": "no-reply@app.example"}},
    "delivery-status": {"tls": true, "mx-host": "mx.mail.example", "attempt-no": 1, "description": "", "code": 550,
      "message": "5.1.1 The email account that you tried to reach does not exist. Please try\n5.1.1 double-checking"}}})");

const Json sendgrid = parse_json(R"({
  "ip": "192.0.2.17", "status": "5.1.1", "smtp-id": "<mailroom.k.42.mailroom@app.example>", "sg_event_id": "lC0Rc-FuQmKbnxCWxX1jRQ",
  "reason": "550 5.1.1 The email account that you tried to reach does not exist.", "tls": 1, "event": "bounce", "type": "bounce",
  "sg_message_id": "Lli-03HcQ5-JLybO9fXsJg.filter0077p1las1.21536.5717FC482.0", "email": "ada@mail.example",
  "timestamp": 1795000000, "mailroom": "42-k3x9q2mh7d"})");

const Json brevo = parse_json(R"({
  "event": "hard_bounce", "email": "ada@mail.example", "id": 9999999, "date": "2026-11-27 11:10:23", "ts": 1795000000,
  "message-id": "<202611271158.9876543210@smtp-relay.mailin.fr>", "ts_event": 1795000000, "ts_epoch": 1795000000000, "subject": "x",
  "X-Mailin-custom": "{\"mailroom\":\"42-k3x9q2mh7d\"}", "sending_ip": "192.0.2.3",
  "reason": " RecipientError: 550 5.1.1 <ada@mail.example>: Recipient address rejected: User unknown"})");

const Json mailjet = parse_json(R"({
  "event": "bounce", "time": 1795000000, "MessageID": 12345678901234567, "Message_GUID": "1ab23cd4", "email": "ada@mail.example",
  "mj_campaign_id": 1234567890, "mj_contact_id": 9876543210, "customcampaign": "", "CustomID": "42-k3x9q2mh7d", "Payload": "",
  "blocked": false, "hard_bounce": true, "error_related_to": "recipient", "error": "user unknown", "comment": ""})");

const Json sparkpost = parse_json(R"({
  "msys": {"message_event": {"type": "bounce", "bounce_class": "10", "customer_id": "1", "error_code": "550", "event_id": "84345317653491230",
    "message_id": "0004e3724f57753a3561", "raw_rcpt_to": "ada@mail.example", "rcpt_to": "ada@mail.example", "timestamp": "1795000000",
    "raw_reason": "550 5.1.1 <ada@mail.example>: Recipient address rejected: User unknown", "transmission_id": "84345317650824116",
    "reason": "550 5.1.1 ...@... Recipient address rejected: ...", "rcpt_meta": {"mailroom": "42-k3x9q2mh7d"}}}})");

}  // namespace

TEST_CASE("each kind of event of Postmark has its place") {
  const Json no_words{{"Details", ""}, {"Description", ""}};
  const auto of_type = [&](const char* type) {
    auto more = no_words;
    more["Type"] = type;
    return more;
  };
  const auto subscription = [](bool suppresses, const char* reason, const char* origin) {
    return Json{{"RecordType", "SubscriptionChange"},
                {"Recipient", "ada@mail.example"},
                {"SuppressSending", suppresses},
                {"SuppressionReason", reason},
                {"Origin", origin},
                {"ChangedAt", "2026-11-27T17:17:32Z"}};
  };
  check_rows(postmark,
             {{Json::object(), "hard user_unknown 5.1.1 550 Ada@mail.example"},
              {of_type("HardBounce"), "hard user_unknown - 0 Ada@mail.example"},
              {{{"Details", "smtp;550 5.7.1 blocked by policy"}}, "soft policy 5.7.1 550 Ada@mail.example"},
              {of_type("BadEmailAddress"), "hard user_unknown - 0 Ada@mail.example"},
              {of_type("SoftBounce"), "soft undetermined - 0 Ada@mail.example"},
              {of_type("Transient"), "delayed expired - 0 Ada@mail.example"},
              {of_type("DnsError"), "delayed expired - 0 Ada@mail.example"},
              {of_type("Unknown"), "undetermined undetermined - 0 Ada@mail.example"},
              {of_type("SpamNotification"), "soft spam - 0 Ada@mail.example"},
              {of_type("VirusNotification"), "soft virus - 0 Ada@mail.example"},
              {of_type("Blocked"), "soft blocked - 0 Ada@mail.example"},
              {of_type("DMARCPolicy"), "soft authentication - 0 Ada@mail.example"},
              {of_type("ManuallyDeactivated"), "soft filtered - 0 Ada@mail.example"},
              {of_type("SMTPApiError"), "soft system - 0 Ada@mail.example"},
              {of_type("AutoResponder"), "auto_reply vacation - 0 Ada@mail.example"},
              {of_type("ChallengeVerification"), "auto_reply vacation - 0 Ada@mail.example"},
              {of_type("Unsubscribe"), "unsubscribed unsubscribed - 0 Ada@mail.example"},
              {of_type("OpenRelayTest"), "nothing"},
              {{{"RecordType", "SpamComplaint"}, {"Type", "SpamComplaint"}},
               "complaint feedback - 0 Ada@mail.example"},
              {{{"RecordType", "Delivery"}, {"DeliveredAt", "2026-11-27T13:28:10.2735393-04:00"}},
               "delivered delivered - 0 Ada@mail.example"},
              {{{"RecordType", "Open"}}, "nothing"},
              {{{"RecordType", "Click"}}, "nothing"},
              {subscription(true, "ManualSuppression", "Recipient"),
               "unsubscribed unsubscribed - 0 Ada@mail.example"},
              {subscription(true, "ManualSuppression", "Customer"), "nothing"},
              {subscription(true, "SpamComplaint", "Recipient"), "complaint feedback - 0 Ada@mail.example"},
              {subscription(false, "", "Recipient"), "nothing"},
              {of_type("Strange"), "Postmark Strange"}},
             "postmark", itself);
}

TEST_CASE("each kind of event of Mailgun has its place") {
  const Json quiet{{"delivery-status", {{"code", 605}, {"message", ""}, {"description", ""}}}};
  const auto failed = [&](const char* severity, const char* reason) {
    auto more = quiet;
    more["severity"] = severity;
    more["reason"] = reason;
    return more;
  };
  check_rows(mailgun,
             {{Json::object(), "hard user_unknown 5.1.1 550 ada@mail.example"},
              {failed("permanent", "generic"), "hard user_unknown - 0 ada@mail.example"},
              {failed("permanent", "suppress-bounce"), "hard user_unknown - 0 ada@mail.example"},
              {failed("permanent", "suppress-complaint"), "complaint feedback - 0 ada@mail.example"},
              {failed("permanent", "suppress-unsubscribe"), "unsubscribed unsubscribed - 0 ada@mail.example"},
              {failed("permanent", "old"), "soft expired - 0 ada@mail.example"},
              {failed("permanent", "espblock"), "soft blocked - 0 ada@mail.example"},
              {failed("temporary", "old"), "delayed expired - 0 ada@mail.example"},
              {{{"severity", "temporary"},
                {"reason", "generic"},
                {"delivery-status",
                 {{"code", 498}, {"message", "No MX for nomx.example"}, {"retry-seconds", 1800}}}},
               "delayed host_unknown - 0 ada@mail.example"},
              {{{"delivery-status", {{"code", 552}, {"message", "5.2.2 mailbox full"}}}},
               "soft mailbox_full 5.2.2 552 ada@mail.example"},
              {{{"event", "delivered"}, {"delivery-status", {{"code", 250}, {"message", "OK"}}}},
               "delivered delivered - 0 ada@mail.example"},
              {{{"event", "rejected"},
                {"recipient", nullptr},
                {"delivery-status", nullptr},
                {"reject", {{"reason", "Sandbox"}}}},
               "soft policy - 0 ada@mail.example"},
              {{{"event", "complained"}}, "complaint feedback - 0 ada@mail.example"},
              {{{"event", "unsubscribed"}}, "unsubscribed unsubscribed - 0 ada@mail.example"},
              {{{"event", "opened"}}, "nothing"},
              {{{"event", "accepted"}, {"delivery-status", nullptr}}, "nothing"},
              {{{"event", "strange"}}, "Mailgun strange"}},
             "mailgun", event_data);
}

TEST_CASE("each kind of event of SendGrid has its place") {
  const auto dropped = [](const char* reason) {
    return Json{{"event", "dropped"}, {"type", nullptr}, {"status", ""}, {"reason", reason}};
  };
  check_rows(sendgrid,
             {{Json::object(), "hard user_unknown 5.1.1 550 ada@mail.example"},
              {{{"reason", "552 5.2.2 mailbox full"}, {"status", "5.2.2"}},
               "soft mailbox_full 5.2.2 552 ada@mail.example"},
              {{{"type", "blocked"}, {"reason", ""}, {"status", ""}}, "soft blocked - 0 ada@mail.example"},
              {dropped("Bounced Address"), "hard user_unknown - 0 ada@mail.example"},
              {dropped("Invalid"), "hard user_unknown - 0 ada@mail.example"},
              {dropped("Unsubscribed Address"), "unsubscribed unsubscribed - 0 ada@mail.example"},
              {dropped("Spam Reporting Address"), "complaint feedback - 0 ada@mail.example"},
              {dropped("Recipient List over Package Quota"), "soft mailbox_full - 0 ada@mail.example"},
              {{{"event", "deferred"},
                {"reason", nullptr},
                {"status", nullptr},
                {"response", "400 try again later"}},
               "delayed system - 400 ada@mail.example"},
              {{{"event", "delivered"}, {"reason", nullptr}, {"response", "250 2.0.0 OK"}},
               "delivered delivered - 0 ada@mail.example"},
              {{{"event", "spamreport"}}, "complaint feedback - 0 ada@mail.example"},
              {{{"event", "unsubscribe"}}, "unsubscribed unsubscribed - 0 ada@mail.example"},
              {{{"event", "group_unsubscribe"}}, "nothing"},
              {{{"event", "processed"}}, "nothing"},
              {{{"event", "open"}}, "nothing"},
              {{{"event", "strange"}}, "SendGrid strange"}},
             "sendgrid", itself);
}

TEST_CASE("each kind of event of Brevo has its place") {
  const auto of_kind = [](const char* kind) { return Json{{"event", kind}, {"reason", ""}}; };
  check_rows(brevo,
             {{Json::object(), "hard user_unknown 5.1.1 550 ada@mail.example"},
              {of_kind("hardBounce"), "hard user_unknown - 0 ada@mail.example"},
              {of_kind("invalid_email"), "hard user_unknown - 0 ada@mail.example"},
              {of_kind("soft_bounce"), "soft undetermined - 0 ada@mail.example"},
              {of_kind("blocked"), "soft filtered - 0 ada@mail.example"},
              {of_kind("error"), "soft system - 0 ada@mail.example"},
              {of_kind("deferred"), "delayed expired - 0 ada@mail.example"},
              {of_kind("delivered"), "delivered delivered - 0 ada@mail.example"},
              {of_kind("spam"), "complaint feedback - 0 ada@mail.example"},
              {of_kind("complaint"), "complaint feedback - 0 ada@mail.example"},
              {of_kind("unsubscribed"), "unsubscribed unsubscribed - 0 ada@mail.example"},
              {of_kind("request"), "nothing"},
              {of_kind("unique_proxy_open"), "nothing"},
              {of_kind("strange"), "Brevo strange"}},
             "brevo", itself);
}

TEST_CASE("each kind of event of Mailjet has its place") {
  const auto blocked = [](const char* error) {
    return Json{{"event", "blocked"}, {"hard_bounce", nullptr}, {"error", error}};
  };
  check_rows(
      mailjet,
      {{Json::object(), "hard user_unknown - 0 ada@mail.example"},
       {{{"error", "invalid domain"}, {"error_related_to", "domain"}},
        "hard host_unknown - 0 ada@mail.example"},
       {{{"error", "quota exceeded"}}, "soft mailbox_full - 0 ada@mail.example"},
       {{{"hard_bounce", false}}, "soft user_unknown - 0 ada@mail.example"},
       {{{"hard_bounce", false}, {"error", "greylisted"}}, "delayed rate_limited - 0 ada@mail.example"},
       {blocked("preblocked"), "soft filtered - 0 ada@mail.example"},
       {blocked("user unknown"), "hard user_unknown - 0 ada@mail.example"},
       {blocked("typofix"), "hard user_unknown - 0 ada@mail.example"},
       {blocked("spam reporter"), "complaint feedback - 0 ada@mail.example"},
       {{{"event", "sent"}, {"smtp_reply", "sent (250 2.0.0 OK)"}},
        "delivered delivered - 0 ada@mail.example"},
       {{{"event", "spam"}, {"source", "JMRPP"}}, "complaint feedback - 0 ada@mail.example"},
       {{{"event", "unsub"}}, "unsubscribed unsubscribed - 0 ada@mail.example"},
       {{{"event", "open"}}, "nothing"},
       {{{"event", "strange"}}, "Mailjet strange"}},
      "mailjet", itself);
}

TEST_CASE("each kind of event of SparkPost has its place") {
  const auto of_class = [](const char* number) {
    return Json{{"bounce_class", number}, {"raw_reason", ""}, {"reason", ""}};
  };
  const auto of_type = [](const char* type) {
    return Json{{"type", type}, {"bounce_class", nullptr}, {"raw_reason", ""}, {"reason", ""}};
  };
  check_rows(sparkpost,
             {{Json::object(), "hard user_unknown 5.1.1 550 ada@mail.example"},
              {of_class("30"), "hard user_unknown - 0 ada@mail.example"},
              {of_class("1"), "undetermined undetermined - 0 ada@mail.example"},
              {of_class("22"), "soft mailbox_full - 0 ada@mail.example"},
              {of_class("40"), "soft undetermined - 0 ada@mail.example"},
              {of_class("51"), "soft spam - 0 ada@mail.example"},
              {of_class("60"), "auto_reply vacation - 0 ada@mail.example"},
              {of_class("90"), "unsubscribed unsubscribed - 0 ada@mail.example"},
              {{{"type", "out_of_band"}}, "hard user_unknown 5.1.1 550 ada@mail.example"},
              {{{"type", "delay"},
                {"bounce_class", "21"},
                {"raw_reason", "454 4.4.4 [internal] no MX or A for domain"}},
               "delayed host_unknown 4.4.4 454 ada@mail.example"},
              {of_type("delivery"), "delivered delivered - 0 ada@mail.example"},
              {of_type("spam_complaint"), "complaint feedback - 0 ada@mail.example"},
              {of_type("list_unsubscribe"), "unsubscribed unsubscribed - 0 ada@mail.example"},
              {of_type("policy_rejection"), "soft filtered - 0 ada@mail.example"},
              {of_type("generation_failure"), "soft system - 0 ada@mail.example"},
              {of_type("injection"), "nothing"},
              {of_type("amp_open"), "nothing"},
              {of_type("strange"), "SparkPost strange"}},
             "sparkpost", message_event);
  CHECK(bounce::read_events(R"([{"msys":{}}])", *bounce::find_provider("sparkpost")).problem.empty());
}

TEST_CASE("copies of an event have one key, and other events another") {
  const auto key = [](const Json& event) {
    return bounce::read_events(plain_json(event)).events.at(0).bounce.event;
  };
  for (const auto& sample : {postmark, mailgun, sendgrid, mailjet, sparkpost})
    CHECK_FALSE(key(sample).empty());
  auto again = mailgun;
  again["signature"]["token"] = "another";
  CHECK(key(again) == key(mailgun));
  again["event-data"]["id"] = "another";
  CHECK(key(again) != key(mailgun));
  // Those of Brevo have no ids: their bytes tell them apart.
  CHECK(key(brevo).empty());
}

TEST_CASE("a body is taken whole or not at all, and only what its provider posts") {
  const auto problem = [](const Json& body, const char* provider) {
    return bounce::read_events(plain_json(body), *bounce::find_provider(provider)).problem;
  };
  const auto two =
      bounce::read_events(plain_json(Json{sendgrid, sendgrid}), *bounce::find_provider("sendgrid"));
  CHECK(two.events.size() == 2);
  CHECK(two.events.front().bytes == plain_json(sendgrid));
  CHECK(problem({sendgrid, brevo}, "sendgrid") ==
        "event 2: it is no event of SendGrid: it lacks event or sg_event_id");
  CHECK(bounce::read_events(plain_json(Json{sendgrid, brevo}), *bounce::find_provider("sendgrid"))
            .events.empty());
  const std::vector<std::pair<const char*, Json>> all{{"postmark", postmark}, {"mailgun", mailgun},
                                                      {"sendgrid", sendgrid}, {"brevo", brevo},
                                                      {"mailjet", mailjet},   {"sparkpost", sparkpost}};
  for (const auto& [own, event] : all) {
    for (const auto& [other, unused] : all)
      CHECK(problem(event, other).empty() == (std::string_view(own) == other));
  }
  CHECK(problem({{"RecordType", "Inbound"}}, "postmark") ==
        "it is a mail that Postmark has received, and no event");
  CHECK(problem({{"FromFull", {{"Email", "a@b.example"}}}}, "postmark") ==
        "it is a mail that Postmark has received, and no event");
  CHECK(problem({{"items", Json::array()}}, "brevo") == "it is mail that Brevo has received, and no event");
  CHECK(problem({{"msys", {{"relay_message", {{"a", 1}}}}}}, "sparkpost") ==
        "it is a mail that SparkPost has received (relay_message), and no event");
  CHECK(bounce::read_events("event=bounced", *bounce::find_provider("mailgun")).problem == "it is no JSON");
  CHECK(bounce::read_events("{}").problem == "it is no event of a provider that is known");
}

TEST_CASE("a script's report says what became of a mail, or is refused by what is wrong") {
  const auto read = [](const Json& report) {
    return bounce::read_events(plain_json(report), *bounce::find_provider("report"));
  };
  const Json good{{"address", "ada@mail.example"}, {"kind", "hard"}, {"token", 42}};
  const auto with = [&](const Json& more) {
    auto report = good;
    report.update(more);
    return report;
  };
  const auto bounce = read(with({{"reason", "550 5.1.1 user unknown"}})).events.at(0).bounce;
  CHECK(recipients_of(bounce) == "hard user_unknown - 0 ada@mail.example");
  CHECK(bounce.mail.token == 42);
  CHECK(bounce.recipients.front().diagnostic == "550 5.1.1 user unknown");
  CHECK(recipients_of(read(with({{"reason", "host_unknown"}})).events.at(0).bounce) ==
        "hard host_unknown - 0 ada@mail.example");
  CHECK(read(with({{"token", id}})).events.at(0).bounce.envelope_id == id);
  CHECK(read(with({{"token", "42"}})).events.at(0).bounce.mail.token == 42);
  CHECK(read({{"address", "a@b.example"}, {"kind", "soft"}, {"message_id", "<x.k.42.mailroom@app.example>"}})
            .events.at(0)
            .bounce.message_id == "x.k.42.mailroom@app.example");
  CHECK(read(with({{"at", "2026-11-27T10:00:00+01:00"}})).events.at(0).bounce.mail.sent_at);
  CHECK(read(with({{"at", 1795000000}})).events.at(0).bounce.mail.sent_at);
  for (const auto* const kind :
       {"hard", "soft", "undetermined", "complaint", "unsubscribed", "delayed", "auto_reply", "delivered"})
    CHECK(recipients_of(read(with({{"kind", kind}})).events.at(0).bounce).starts_with(kind));
  const auto problem = [&](const Json& report) { return read(report).problem; };
  CHECK(problem(7) == "it is no object");
  CHECK(problem(with({{"address", "ada"}})) == "address is no address");
  CHECK(problem(with({{"kind", "bounced"}})).starts_with("kind 'bounced' is none of hard, soft,"));
  CHECK(problem({{"address", "a@b.example"}, {"kind", "hard"}}) == "it has neither message_id nor token");
  CHECK(problem(with({{"token", "x"}})) == "token 'x' is none");
  CHECK(problem(with({{"token", -1}})) == "token '-1' is none");
  CHECK(problem(with({{"at", "yesterday"}})) == "at is no time");
  CHECK(bounce::read_events(plain_json(with({{"kind", "bounced"}}))).problem.starts_with("kind 'bounced'"));
}

TEST_CASE("the relays of a provider are known by their hosts, and a header carries the id") {
  const auto name = [](const char* host) {
    const auto* const provider = bounce::provider_of_host(host);
    return provider == nullptr ? std::string_view() : provider->name;
  };
  CHECK(name("SMTP.postmarkapp.com") == "postmark");
  CHECK(name("smtp.eu.mailgun.org") == "mailgun");
  CHECK(name("smtp.sendgrid.net") == "sendgrid");
  CHECK(name("smtp-relay.brevo.com") == "brevo");
  CHECK(name("in-v3.mailjet.com") == "mailjet");
  CHECK(name("smtp.sparkpostmail.com") == "sparkpost");
  CHECK(name("email-smtp.eu-west-1.amazonaws.com") == "ses");
  CHECK(name("smtp.resend.com") == "resend");
  CHECK(name("smtp.mailgun.org.evil.example").empty());
  CHECK(name("email-smtp.amazonaws.com").empty());
  CHECK(name("relay.example").empty());
  const auto header = [](const char* provider) { return bounce::find_provider(provider)->header(id); };
  CHECK(header("postmark") == "X-PM-Metadata-mailroom: 42-k3x9q2mh7d");
  CHECK(header("mailgun") == R"(X-Mailgun-Variables: {"mailroom":"42-k3x9q2mh7d"})");
  CHECK(header("sendgrid") == R"(X-SMTPAPI: {"unique_args":{"mailroom":"42-k3x9q2mh7d"}})");
  CHECK(header("brevo") == R"(X-Mailin-custom: {"mailroom":"42-k3x9q2mh7d"})");
  CHECK(header("mailjet") == "X-MJ-CustomID: 42-k3x9q2mh7d");
  CHECK(header("sparkpost") == R"(X-MSYS-API: {"metadata":{"mailroom":"42-k3x9q2mh7d"}})");
  CHECK(header("ses") == "X-SES-MESSAGE-TAGS: mailroom=42-k3x9q2mh7d");
}

}  // namespace mailroom::test::provider_event_test
