// What Amazon SES and Resend say of mails after they took them, in every form of JSON.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "bounce/bounce.hpp"
#include "support/bounce_text.hpp"
#include "support/catch.hpp"

namespace mailroom::test::bounce_event_test {
namespace {

using Json = nlohmann::json;

std::string read(const Json& event) {
  return recipients_of(bounce::read_event(plain_json(event)));
}

/// An event of a configuration set. Amazon's sample, shortened, with the tags of our mails.
Json ses(const std::string& type, const std::string& key, const Json& details) {
  return {{"eventType", type},
          {"mail",
           {{"timestamp", "2026-11-25T09:30:15.123Z"},
            {"messageId", "EXAMPLE7c191be45-e9aedb9a-02f9-4d12-a87d-dd0099a07f8a-000000"},
            {"source", "no-reply@app.example"},
            {"destination", {"ada@mail.example"}},
            {"headersTruncated", false},
            {"headers", {{{"name", "Message-ID"}, {"value", "<mailroom.k.42.mailroom@app.example>"}}}},
            {"tags", {{"ses:operation", {"SendRawEmail"}}, {"queue", {"mailroom"}}, {"token", {"42"}}}}}},
          {key, details}};
}

Json bounce(const std::string& type, const std::string& subtype, const std::string& status,
            const std::string& diagnostic) {
  return ses("Bounce", "bounce",
             {{"bounceType", type},
              {"bounceSubType", subtype},
              {"feedbackId", "0100"},
              {"reportingMTA", "dsn; a8-70.smtp-out.amazonses.com"},
              {"bouncedRecipients",
               {{{"emailAddress", "Ada <ada@Mail.example>"},
                 {"action", "failed"},
                 {"status", status},
                 {"diagnosticCode", diagnostic}}}}});
}

Json resend(const std::string& type, const Json& more = Json::object()) {
  Json event{{"type", "email." + type},
             {"created_at", "2026-11-22T23:41:12.126Z"},
             {"data",
              {{"created_at", "2026-11-22 23:41:11.894719+00"},
               {"email_id", "56761188-7520-42d8-8898-ff6fc54ce618"},
               {"to", {"ada@mail.example"}},
               {"tags", {{"queue", "mailroom"}, {"token", "42"}}}}}};
  event["data"].update(more);
  return event;
}

}  // namespace

TEST_CASE("a bounce of SES is judged by the server's words, then by the status, then by its type") {
  struct Row {
    Json event;
    std::string expected;
  };
  const std::string unknown = "smtp; 550 5.1.1 user unknown";
  for (const auto& [event, expected] : std::vector<Row>{
           {bounce("Permanent", "General", "5.1.1", unknown), "hard user_unknown 5.1.1 550 ada@mail.example"},
           {bounce("Permanent", "NoEmail", "", ""), "hard user_unknown - 0 ada@mail.example"},
           {bounce("Permanent", "General", "5.2.2", "smtp; 552 5.2.2 mailbox full"),
            "soft mailbox_full 5.2.2 552 ada@mail.example"},
           {bounce("Permanent", "General", "5.7.1", "smtp; 550 5.7.1 blocked by policy"),
            "soft policy 5.7.1 550 ada@mail.example"},
           {bounce("Permanent", "Suppressed", "5.1.1",
                   "Amazon SES has suppressed sending to this address because it has a recent history of "
                   "bouncing as an invalid address"),
            "hard user_unknown 5.1.1 0 ada@mail.example"},
           {bounce(
                "Permanent", "OnAccountSuppressionList", "5.1.1",
                "Amazon SES did not send the message to this address because it is on the suppression list"),
            "hard user_unknown 5.1.1 0 ada@mail.example"},
           {bounce("Transient", "MailboxFull", "", ""), "soft mailbox_full - 0 ada@mail.example"},
           {bounce("Transient", "MessageTooLarge", "", ""), "soft message_too_big - 0 ada@mail.example"},
           {bounce("Transient", "ContentRejected", "", ""), "soft content - 0 ada@mail.example"},
           {bounce("Transient", "AttachmentRejected", "", ""), "soft content - 0 ada@mail.example"},
           {bounce("Transient", "General", "", ""), "auto_reply vacation - 0 ada@mail.example"},
           {bounce("Transient", "General", "5.1.1", unknown), "soft user_unknown 5.1.1 550 ada@mail.example"},
           {bounce("Undetermined", "Undetermined", "", ""), "auto_reply vacation - 0 ada@mail.example"},
           {bounce("Undetermined", "Undetermined", "5.1.1", unknown),
            "hard user_unknown 5.1.1 550 ada@mail.example"},
           {bounce("New type", "", "", ""), "undetermined undetermined - 0 ada@mail.example"}}) {
    INFO(plain_json(event));
    CHECK(read(event) == expected);
  }
}

TEST_CASE("a bounce of SES is about a mail by its id, its tags and its Message-ID, of whatever form it is") {
  auto event = bounce("Permanent", "General", "5.1.1", "smtp; 550 5.1.1 user unknown");
  const auto check = [](const Json& form) {
    INFO(plain_json(form));
    const auto read = bounce::read_event(plain_json(form));
    REQUIRE(read);
    CHECK(read->mail.id == "EXAMPLE7c191be45-e9aedb9a-02f9-4d12-a87d-dd0099a07f8a-000000");
    CHECK(read->mail.queue == "mailroom");
    CHECK(read->mail.token == 42);
    REQUIRE(read->mail.sent_at);
    CHECK(moment_text(*read->mail.sent_at).starts_with("2026-11-25T09:30:15"));
    CHECK(read->message_id == "mailroom.k.42.mailroom@app.example");
    CHECK(read->recipients.size() == 1);
    CHECK(read->recipients[0].remote_mta == "a8-70.smtp-out.amazonses.com");
    return read->event;
  };
  const auto key = check(event);
  CHECK_FALSE(key.empty());
  CHECK(check({{"Type", "Notification"}, {"MessageId", "1"}, {"Message", plain_json(event)}}) == key);
  CHECK(check({{"source", "aws.ses"}, {"detail-type", "Email Bounced"}, {"detail", event}}) == key);
  event["notificationType"] = event["eventType"];
  event.erase("eventType");
  event["bounce"]["feedbackId"] = "another";
  event["unknown"] = {1, 2, 3};
  CHECK(check(event) == key);
  event["bounce"]["bouncedRecipients"][0]["emailAddress"] = "bob@mail.example";
  CHECK(check(event) != key);
}

TEST_CASE("the other events of SES: delivery, delay, complaint, rejection; clicks say nothing") {
  CHECK(read(ses("Delivery", "delivery", {{"recipients", {"ada@mail.example", "bob@mail.example"}}})) ==
        "delivered delivered - 0 ada@mail.example\ndelivered delivered - 0 bob@mail.example");
  CHECK(read(ses("DeliveryDelay", "deliveryDelay",
                 {{"delayType", "MailboxFull"},
                  {"delayedRecipients",
                   {{{"emailAddress", "ada@mail.example"}, {"diagnosticCode", "smtp; 421 busy"}}}}})) ==
        "delayed system - 421 ada@mail.example");
  const auto complaint = [](const char* type) {
    return ses("Complaint", "complaint",
               {{"complaintFeedbackType", type},
                {"complainedRecipients", {{{"emailAddress", "ada@mail.example"}}}}});
  };
  CHECK(read(complaint("abuse")) == "complaint feedback - 0 ada@mail.example");
  CHECK(read(complaint("not-spam")) == "undetermined feedback - 0 ada@mail.example");
  CHECK(read(ses("Reject", "reject", {{"reason", "Bad content"}})) == "soft virus - 0 ada@mail.example");
  for (const auto* type : {"Send", "Open", "Click", "Rendering Failure", "Subscription", "AmazonSnsTest"})
    CHECK(read(ses(type, "x", Json::object())) == "no bounce");
}

TEST_CASE("the events of Resend") {
  const auto bounced = [](const char* type, const char* subtype, const char* words) {
    return resend("bounced", {{"bounce",
                               {{"type", type},
                                {"subType", subtype},
                                {"message", "The recipient's mail server said no"},
                                {"diagnosticCode", {words}}}}});
  };
  CHECK(read(bounced("Permanent", "General", "smtp; 550 5.1.1 user unknown")) ==
        "hard user_unknown 5.1.1 550 ada@mail.example");
  CHECK(read(bounced("Permanent", "Suppressed", "x")) == "hard user_unknown - 0 ada@mail.example");
  CHECK(read(bounced("Permanent", "General", "smtp; 552 5.2.2 mailbox full")) ==
        "soft mailbox_full 5.2.2 552 ada@mail.example");
  CHECK(read(bounced("Transient", "MailboxFull", "x")) == "soft mailbox_full - 0 ada@mail.example");
  CHECK(read(bounced("Undetermined", "Undetermined", "x")) ==
        "undetermined undetermined - 0 ada@mail.example");
  CHECK(read(resend("suppressed", {{"suppressed", {{"message", "on the list"}}}})) ==
        "hard user_unknown - 0 ada@mail.example");
  CHECK(read(resend("delivered")) == "delivered delivered - 0 ada@mail.example");
  CHECK(read(resend("complained")) == "complaint feedback - 0 ada@mail.example");
  CHECK(read(resend("delivery_delayed")) == "delayed expired - 0 ada@mail.example");
  CHECK(read(resend("failed", {{"failed", {{"reason", "reached_daily_quota"}}}})) ==
        "soft system - 0 ada@mail.example");
  for (const auto* type : {"sent", "opened", "clicked", "scheduled"})
    CHECK(read(resend(type)) == "no bounce");
  const auto event = bounce::read_event(plain_json(resend("delivered")));
  CHECK(event->mail.id == "56761188-7520-42d8-8898-ff6fc54ce618");
  CHECK(event->mail.queue == "mailroom");
  CHECK(event->mail.token == 42);
  CHECK(moment_text(event->mail.sent_at.value()) == "2026-11-22T23:41:11Z");
  const Json listed{{{"name", "queue"}, {"value", "mailroom"}}, {{"name", "token"}, {"value", "42"}}};
  CHECK(bounce::read_event(plain_json(resend("delivered", {{"tags", listed}})))->mail.token == 42);
}

TEST_CASE("an event with members of other types is read as far as it goes") {
  for (
      const auto* text :
      {"", "{", "[]", "{}", "null", R"({"eventType":1,"mail":{}})", R"({"eventType":"Bounce","mail":[]})",
       R"({"type":"email.bounced","data":1})", R"({"Type":"Notification","Message":"{"})",
       R"({"Type":"Notification","Message":"Successfully validated SNS topic for Amazon SES event publishing."})",
       "{\"eventType\":\"Bounce\xff\",\"mail\":{}}"})
    CHECK_FALSE(bounce::read_event(text));
  for (
      const auto* text :
      {R"({"eventType":"Bounce","mail":{}})", R"({"eventType":"Bounce","mail":{},"bounce":[1]})",
       R"({"eventType":"Bounce","mail":{"headers":{"a":1},"tags":[1]},"bounce":{"bouncedRecipients":{"a":1}}})",
       R"({"eventType":"Delivery","mail":{"tags":{"queue":[],"token":[1]}},"delivery":{"recipients":[1,null]}})",
       R"({"type":"email.bounced","data":{"to":7,"bounce":"x","tags":[7,{"name":7}]}})"}) {
    INFO(text);
    const auto event = bounce::read_event(text);
    REQUIRE(event);
    CHECK(event->recipients.empty());
    CHECK(event->event.empty());
  }
  auto event = bounce("Permanent", "General", "x\r\nBcc: all", "550 no\x01\r\n\xE2\x80\xAE user unknown");
  event["mail"]["messageId"] = "a b";
  event["mail"]["timestamp"] = "1h";
  event["bounce"]["bouncedRecipients"][0]["emailAddress"] = "ada\x01@mail.example";
  const auto read = bounce::read_event(plain_json(event)).value();
  CHECK(read.mail.id.empty());
  CHECK_FALSE(read.mail.sent_at);
  CHECK(read.recipients[0].address.empty());
  CHECK(read.recipients[0].status.empty());
  CHECK(is_printable(read.recipients[0].diagnostic));
}

TEST_CASE("an event with very many recipients, or nested deep, takes little") {
  Json recipients = Json::array();
  for (int i = 0; i < 5000; ++i)
    recipients.push_back({{"emailAddress", fmt::format("a{}@mail.example", i)}});
  const auto many = ses("Bounce", "bounce", {{"bounceType", "Permanent"}, {"bouncedRecipients", recipients}});
  CHECK(bounce::read_event(plain_json(many))->recipients.size() == bounce::bounce_limits::max_recipients);
  const std::string deep(200'000, '[');
  CHECK_FALSE(bounce::read_event("{\"eventType\":\"Bounce\",\"mail\":" + deep));
  CHECK_FALSE(bounce::read_event("{\"a\":" + deep + std::string(200'000, ']') + "}"));
}

}  // namespace mailroom::test::bounce_event_test
