// What came back of mails, in the commands that look at all of them: one word for it everywhere.

#include "base/pattern.hpp"
#include "integration/bounce_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test::came_back_test {
namespace {

struct CameBackRig : BounceRig {
  /// A report of the last mail to `to`, of `kind` as mailroom_bounces has it.
  void came_back(const std::string& to, const std::string& kind, const std::string& reason,
                 const std::string& reply) {
    connection->run(R"(
INSERT INTO mailroom_bounces (digest, place, source, queue, token, address, kind, reason, status, reply)
SELECT sha256(clock_timestamp()::text::bytea), 1, 'stdin', 'mailroom', max(d.token), $1, $2, $3, '5.1.1', $4
FROM mailroom_deliveries d WHERE d.address = $1)",
                    to, kind, reason, reply);
  }
  std::string listed(const std::string& outcome) {
    return run({"audit", "--outcome", outcome, "-o", "csv"}).output;
  }
  std::string counted_outcomes() { return run({"reconcile", "-o", "json"}).output; }
};

/// Wherever its lines are broken.
bool has(const std::string& text, const std::string& part) {
  return Pattern("\\s+").replaced(text, " ").find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what came back of a mail is its outcome, with the words of the server that said it") {
  CameBackRig rig;
  for (const auto* to : {"ada@mail.example", "bob@mail.example", "cy@mail.example", "dan@mail.example"})
    rig.mail(to);
  rig.came_back("ada@mail.example", "hard", "user_unknown", "550 no such user");
  rig.came_back("bob@mail.example", "complaint", "feedback", "abuse");
  rig.came_back("cy@mail.example", "delivered", "delivered", "250 ok");
  const auto counts = rig.counted_outcomes();
  CAPTURE(counts);
  CHECK(has(counts, R"({"outcome":"accepted","explanation":null,"tokens":1})"));
  CHECK(has(counts, R"({"outcome":"bounced","explanation":"hard, user_unknown","tokens":1})"));
  CHECK(has(counts, R"({"outcome":"complained","explanation":"feedback","tokens":1})"));
  CHECK(has(counts, R"({"outcome":"delivered","explanation":"delivered","tokens":1})"));
  const auto bounced = rig.listed("bounced");
  CAPTURE(bounced);
  CHECK(has(bounced, "ada@mail.example"));
  CHECK(has(bounced, "\"hard, user_unknown\",,5.1.1 550 no such user"));
  CHECK_FALSE(has(bounced, "bob@mail.example"));
  CHECK(has(rig.run({"audit", "ada@mail.example", "-o", "json"}).output, R"("outcome":"bounced")"));
  CHECK(has(rig.run({"resend", "--outcome", "bounced", "--dry-run"}).errors +
                rig.run({"resend", "--outcome", "bounced", "--dry-run"}).output,
            "ada@mail.example"));
  CHECK(value<std::string>(
            *rig.connection,
            "SELECT string_agg(state || ' ' || reply, ', ' ORDER BY m.id) FROM mailroom_messages m, "
            "LATERAL mailroom_message_status(m.id) WHERE m.id < 3") ==
        "bounced user_unknown: 5.1.1 550 no such user, complained feedback: 5.1.1 abuse");
  CHECK(has(rig.run({"message", "list", "--state", "bounced"}).output, "bounced"));
  const auto events = rig.run({"tail", "--state", "bounced,complained"}).output;
  CAPTURE(events);
  CHECK(has(events, "bounced"));
  CHECK(has(events, "complained"));
  CHECK_FALSE(has(events, "accepted"));
}

TEST_CASE(
    "a hard bounce counts more than a delivery, whichever is read first, and a new mail more than both") {
  CameBackRig rig;
  rig.mail("ada@mail.example");
  rig.came_back("ada@mail.example", "delayed", "expired", "still trying");
  CHECK(value<std::string>(*rig.connection, "SELECT state FROM mailroom_message_status(1)") == "accepted");
  rig.came_back("ada@mail.example", "soft", "expired", "still trying");
  rig.came_back("ada@mail.example", "delivered", "delivered", "250 ok");
  CHECK(has(rig.counted_outcomes(), R"("delivered","explanation")"));
  rig.came_back("ada@mail.example", "auto_reply", "vacation", "away");
  CHECK(has(rig.counted_outcomes(), R"("delivered","explanation")"));
  // Nothing less than a hard bounce says anything of a mail that arrived, and a delay never does.
  for (const auto* const kind : {"soft", "undetermined", "delayed", "unread"}) {
    rig.came_back("ada@mail.example", kind, "expired", "still trying");
    CHECK(has(rig.counted_outcomes(), R"("delivered","explanation")"));
    CHECK(value<std::string>(*rig.connection, "SELECT state FROM mailroom_message_status(1)") == "delivered");
  }
  rig.came_back("ada@mail.example", "hard", "user_unknown", "550 gone");
  rig.came_back("ada@mail.example", "delivered", "delivered", "250 ok");
  CHECK(has(rig.counted_outcomes(), R"("bounced","explanation":"hard, user_unknown")"));
  CHECK(has(rig.run({"audit", "ada@mail.example", "-o", "json"}).output, R"("outcome":"bounced")"));
  CHECK(rig.run({"resend", "token:1", "-y"}).status == 0);
  CHECK(rig.run({"send", "--once"}).status == 0);
  CHECK(has(rig.counted_outcomes(), R"("outcome":"accepted","explanation":null,"tokens":1)"));
  CHECK(has(rig.run({"audit", "ada@mail.example", "-o", "json"}).output, R"("outcome":"accepted")"));
}

TEST_CASE("status counts what came back, and warns where providers stop senders") {
  CameBackRig rig;
  rig.mail("ada@mail.example");
  rig.came_back("ada@mail.example", "soft", "mailbox_full", "552 full");
  rig.connection->run(
      "INSERT INTO mailroom_bounces (digest, place, source, kind, reason) "
      "VALUES (sha256('x'), 1, 'stdin', 'unread', 'undetermined')");
  const auto before = rig.run({"status"}).output;
  CAPTURE(before);
  CHECK(has(before, "1 other bounce, 1 report of no mail that is known in the last hour"));
  CHECK_FALSE(has(before, "providers stop senders"));
  // Mails are counted, and not what is said of them.
  for (int i = 0; i < 10; ++i)
    rig.came_back("ada@mail.example", "hard", "user_unknown", "550 gone");
  CHECK(has(rig.run({"status"}).output, "1 hard bounce, 1 other bounce"));
  for (int i = 0; i < 10; ++i) {
    const auto to = "u" + std::to_string(i) + "@mail.example";
    rig.mail(to);
    if (i < 9) rig.came_back(to, "hard", "user_unknown", "550 gone");
    if (i < 3) rig.came_back(to, "complaint", "feedback", "abuse");
  }
  const auto after = rig.run({"status"});
  CAPTURE(after.output);
  CHECK(
      has(after.output, "10 hard bounces came back within the last hour, in which 11 mails were accepted: "));
  CHECK(has(after.output, "3 complaints came back within the last hour, in which 11 mails were accepted: "));
  CHECK(has(rig.run({"status", "-o", "prometheus"}).output,
            "mailroom_queue_reports{queue=\"mailroom\",kind=\"hard\"} 10 "));
  rig.connection->run("UPDATE mailroom_bounces SET at = at - interval '1 hour'");
  CHECK_FALSE(has(rig.run({"status"}).output, "came back"));
}

}  // namespace mailroom::test::came_back_test
