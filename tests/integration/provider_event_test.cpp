// Events of Amazon SES and Resend: whose mail each is about, and what follows, in any order and however
// often.

#include "base/json.hpp"
#include "integration/bounce_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test::provider_event_test {
namespace {

using Json = nlohmann::json;

struct EventRig : BounceRig {
  /// Mails as by SES: its answer has an id.
  void mail_by_provider(const std::string& to, const std::string& id) {
    mail(to);
    connection->run(
        "UPDATE mailroom_deliveries SET reply = $1 WHERE token = (SELECT max(token) FROM mailroom_deliveries)",
        id);
  }
  std::string last_message_id() {
    const auto message = relay.taken().back().message;
    const auto at = message.find("Message-ID: ") + 12;
    return message.substr(at, message.find('\r', at) - at);
  }
  std::string now() {
    return value<std::string>(
        *connection, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')");
  }
  Json ses(const std::string& id, const std::string& type, const std::string& key, const Json& details) {
    return {{"notificationType", type}, {"mail", {{"messageId", id}, {"timestamp", now()}}}, {key, details}};
  }
  Json bounce(const std::string& id, const std::vector<std::string>& addresses) {
    Json recipients = Json::array();
    for (const auto& address : addresses)
      recipients.push_back({{"emailAddress", address},
                            {"action", "failed"},
                            {"status", "5.1.1"},
                            {"diagnosticCode", "smtp; 550 5.1.1 user unknown"}});
    return ses(
        id, "Bounce", "bounce",
        {{"bounceType", "Permanent"}, {"bounceSubType", "General"}, {"bouncedRecipients", recipients}});
  }
  Json delivery(const std::string& id, const std::string& address) {
    return ses(id, "Delivery", "delivery", {{"recipients", {address}}});
  }
  static Json with_tags(Json event, std::int64_t token) {
    event["mail"]["tags"] = {{"queue", {"mailroom"}}, {"token", {std::to_string(token)}}};
    return event;
  }
  std::string suppressed() {
    return value<std::string>(
        *connection,
        "SELECT coalesce(string_agg(address, ' ' ORDER BY address), '') FROM mailroom_suppressions");
  }
  int bounces() { return value<int>(*connection, "SELECT count(*) FROM mailroom_bounces"); }
};

constexpr auto read_as_hard =
    "token 1 of queue mailroom, ada@mail.example: hard, user_unknown: 5.1.1 550 5.1.1 user unknown; the address "
    "is suppressed\n";

}  // namespace

TEST_CASE(
    "an event is about the mail that the provider gave its id to, and is judged once by whatever way it comes") {
  EventRig rig;
  rig.mail_by_provider("ada@mail.example", "0102-ses");
  auto event = rig.bounce("0102-ses", {"ada@mail.example"});
  CHECK(rig.read(plain_json(event)) == read_as_hard);
  CHECK(rig.suppressed() == "ada@mail.example");
  event["bounce"]["feedbackId"] = "another";
  const Json wrapped{{"Type", "Notification"}, {"MessageId", "7"}, {"Message", plain_json(event)}};
  CHECK(rig.read(plain_json(wrapped)).ends_with("; read before\n"));
  CHECK(rig.bounces() == 1);
  CHECK(rig.run({"audit", "ada@mail.example"}).output.find("; then bounced ") != std::string::npos);
}

TEST_CASE("an event of Resend is about the mail with its id, also where a lost answer was asked for again") {
  EventRig rig;
  rig.mail_by_provider("ada@mail.example",
                       "5676-resend (sent again with the same key, as an answer was lost)");
  const Json event{
      {"type", "email.complained"},
      {"data", {{"email_id", "5676-resend"}, {"created_at", rig.now()}, {"to", {"ada@mail.example"}}}}};
  CHECK(rig.read(plain_json(event)) ==
        "token 1 of queue mailroom, ada@mail.example: complaint, feedback; the address is suppressed\n");
}

TEST_CASE(
    "an event is about the mail with its Message-ID, or with its tags for the address that was mailed") {
  EventRig rig;
  rig.mail_by_provider("ada@mail.example", "0102-ses");
  auto event = rig.bounce("another", {"ada@mail.example"});
  event["mail"]["headers"] = {{{"name", "Message-ID"}, {"value", rig.last_message_id()}}};
  CHECK(rig.read(plain_json(event)) == read_as_hard);
  const auto tagged = EventRig::with_tags(rig.bounce("a third", {"ada@mail.example"}), 1);
  CHECK(rig.read(plain_json(tagged)) == read_as_hard);
}

TEST_CASE("an event of a mail that is not ours is kept for a look, and suppresses nobody") {
  EventRig rig;
  rig.mail_by_provider("ada@mail.example", "0102-ses");
  auto old = rig.bounce("0102-ses", {"ada@mail.example"});
  old["mail"]["timestamp"] = "2001-01-01T00:00:00Z";
  auto other_queue = EventRig::with_tags(rig.bounce("z", {"ada@mail.example"}), 1);
  other_queue["mail"]["tags"]["queue"] = {"other"};
  for (const auto& event :
       {rig.bounce("x", {"ada@mail.example"}), EventRig::with_tags(rig.bounce("y", {"bob@mail.example"}), 1),
        EventRig::with_tags(rig.bounce("y", {"ada@mail.example"}), 2), other_queue, old}) {
    INFO(plain_json(event));
    CHECK(rig.read(plain_json(event)).starts_with("of no mail that is known, to "));
  }
  CHECK(rig.suppressed().empty());
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_bounces WHERE token IS NULL AND report IS NOT NULL") == 5);
  CHECK(rig.read(R"({"eventType":"Bounce","mail":{"messageId":"q"}})") ==
        "of no mail that is known: unread, undetermined\n");
  CHECK(rig.read(R"({"eventType":"Click","mail":{"messageId":"q"}})") ==
        rig.directory.path().string() + "/report: neither a bounce nor a complaint nor an automatic reply\n");
  CHECK(rig.bounces() == 6);
}

TEST_CASE("an event that comes before its mail is on record is of a known mail when it comes again") {
  EventRig rig;
  const auto event = rig.bounce("0102-ses", {"ada@mail.example"});
  CHECK(rig.read(plain_json(event)).starts_with("of no mail that is known"));
  CHECK(rig.read(plain_json(event)).ends_with("; read before\n"));
  rig.mail_by_provider("ada@mail.example", "0102-ses");
  CHECK(rig.read(plain_json(event)) == read_as_hard);
  CHECK(rig.read(plain_json(event)).ends_with("; read before\n"));
  CHECK(rig.bounces() == 1);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_bounces WHERE report IS NOT NULL") == 0);
}

TEST_CASE(
    "a delivery frees an address from a bounce of another mail, not from one of the same, and each recipient of an event counts") {
  EventRig rig;
  rig.mail_by_provider("ada@mail.example", "0102-ses");
  rig.read(plain_json(rig.bounce("0102-ses", {"ada@mail.example"})));
  CHECK(rig.suppressed() == "ada@mail.example");
  rig.read(plain_json(rig.delivery("0102-ses", "ada@mail.example")));
  CHECK(rig.suppressed() == "ada@mail.example");
  rig.connection->run("UPDATE mailroom_actions SET security = true WHERE action = 'message'");
  rig.mail_by_provider("ada@mail.example", "0103-ses");
  rig.connection->run("UPDATE mailroom_actions SET security = false WHERE action = 'message'");
  rig.read(plain_json(rig.delivery("0103-ses", "ada@mail.example")));
  CHECK(rig.suppressed().empty());
  rig.read(plain_json(rig.bounce("0103-ses", {"ada@mail.example"})));
  CHECK(rig.suppressed() == "ada@mail.example");
  CHECK(rig.bounces() == 4);
  rig.mail_by_provider("bob@mail.example", "0104-ses");
  const auto read = rig.read(
      plain_json(EventRig::with_tags(rig.bounce("z", {"carol@mail.example", "BOB@Mail.example"}), 3)));
  CHECK(read.starts_with("of no mail that is known, to carol@mail.example: hard"));
  CHECK(read.find("\ntoken 3 of queue mailroom, bob@mail.example: hard") != std::string::npos);
  CHECK(rig.suppressed() == "ada@mail.example bob@mail.example");
}

TEST_CASE("an event shows that a mail was accepted whose answer was lost") {
  EventRig rig;
  for (const auto* type : {"delivery", "bounce", "complaint"}) {
    const auto to = std::string(type) + "@mail.example";
    rig.mail(to);
    const auto token = value<std::int64_t>(*rig.connection, "SELECT max(token) FROM mailroom_deliveries");
    rig.connection->run(
        "UPDATE mailroom_deliveries SET state = 'unknown', accepted_at = NULL, reply = 'timeout' WHERE token = $1",
        token);
    const auto event =
        std::string(type) == "delivery" ? rig.delivery("0102", to)
        : std::string(type) == "bounce"
            ? rig.bounce("0102", {to})
            : rig.ses("0102", "Complaint", "complaint", {{"complainedRecipients", {{{"emailAddress", to}}}}});
    rig.read(plain_json(EventRig::with_tags(event, token)));
    CHECK(rig.state_of(to) == "accepted a report of it came back");
  }
}

TEST_CASE("the Message-ID that Resend gives a mail is told by its events alone") {
  EventRig rig;
  rig.mail_by_provider("ada@mail.example", "5676-resend");
  rig.connection->run("UPDATE mailroom_deliveries SET message_id = NULL");
  const Json event{{"type", "email.delivered"},
                   {"data",
                    {{"email_id", "5676-resend"},
                     {"created_at", rig.now()},
                     {"message_id", "<0102-ab@eu-west-1.amazonses.com>"},
                     {"to", {"ada@mail.example"}}}}};
  const auto told = [&] {
    return value<std::string>(*rig.connection,
                              "SELECT coalesce(message_id, '-') FROM mailroom_message_status(1)");
  };
  CHECK(told() == "-");
  rig.read(plain_json(event));
  CHECK(told() == "0102-ab@eu-west-1.amazonses.com");
  auto other = event;
  other["data"]["message_id"] = "<other@app.example>";
  rig.read(plain_json(other));
  CHECK(told() == "0102-ab@eu-west-1.amazonses.com");
}

}  // namespace mailroom::test::provider_event_test
