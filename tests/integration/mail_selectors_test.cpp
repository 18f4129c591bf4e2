// The selectors by what a mail is find the same mails for every verb; doubles and counts of a day.

#include "messages/mail_counts.hpp"
#include "messages/message_search.hpp"
#include "selection/selection.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::mail_selectors_test {
namespace {

/// Four messages with a token each, of the same id; their mails have answers.
struct MailRig : DatabaseRig {
  MailRig() {
    auto& session = *connection;
    session.run(
        "INSERT INTO mailroom_messages (recipients, subject, text) VALUES "
        "(ARRAY['Ada <ada@big.example>'], 'Your receipt 17', 't')");
    session.run(
        "INSERT INTO mailroom_messages (recipients, template, locale, data) VALUES "
        "(ARRAY['bob@small.example'], 'receipt', 'de-AT', '{}')");
    session.run(
        "INSERT INTO mailroom_messages (recipients, subject, text) VALUES (ARRAY['eve@BIG.example'], 'News', "
        "'t')");
    session.run(
        "INSERT INTO mailroom_messages (recipients, raw) VALUES (ARRAY['mia@sub.big.example'], "
        "convert_to(E'From: a@b.example\\r\\nSubject: An invoice\\r\\n\\r\\nHello', 'UTF8'))");
    session.run("UPDATE mailroom_messages SET enqueued_by = 'billing' WHERE id = 2");
    session.run(R"(
INSERT INTO mailroom_deliveries (queue, token, state, attempts, unknowns, accepted_at, batch, code, reply, message_id, sink, address) VALUES
  ('mailroom', 1, 'accepted', 1, 0, now(), 1, 250, '2.0.0 Ok: queued as 4Xk2Z1', 'q.k.m1.mailroom@app.example', 'r:25', 'ada@big.example'),
  ('mailroom', 2, 'accepted', 2, 1, now(), 1, 250, '2.0.0 Ok: queued as 4Xk2Z12', 'q.k.m2.mailroom@app.example', 'r:25', 'bob@small.example'),
  ('mailroom', 3, 'rejected', 1, 0, NULL, 1, 550, '5.1.1 no such user', 'q.k.m3.mailroom@app.example', 'r:25', 'eve@BIG.example'),
  ('mailroom', 4, 'unknown', 0, 2, NULL, 1, NULL, 'the connection ended', 'q.k.m4.mailroom@app.example', 'r:25', 'mia@sub.big.example'))");
  }

  Ids messages(const selection::MailSelectors& mail) {
    Ids ids;
    for (const auto& message : messages::list_messages(*connection, {.mail = mail}, 100))
      ids.push_back(message.id);
    std::ranges::sort(ids);
    return ids;
  }
  Ids tokens(const selection::Selection& selection) {
    return connection
        ->run("SELECT t.id FROM tokens t WHERE $2::text IS NOT NULL" + selection.condition("$1", "$2") +
                  " ORDER BY t.id",
              selection.parameter(), "mailroom")
        .values<std::int64_t>();
  }
};

}  // namespace

TEST_CASE(
    "a mail is found by domain, role, template, subject, locale, queue id and Message-ID, by every verb") {
  MailRig rig;
  struct Case {
    selection::MailSelectors selectors;
    Ids found;
  };
  const std::vector<Case> cases{{{.domains = {"big.example"}}, {1, 3}},
                                {{.domains = {"big.example", "small.example"}}, {1, 2, 3}},
                                {{.roles = {"billing"}}, {2}},
                                {{.templates = {"receipt"}}, {2}},
                                {{.templates = {"other"}}, {}},
                                {{.subjects = {"RECEIPT"}}, {1}},
                                {{.subjects = {"invoice", "news"}}, {3, 4}},
                                {{.locales = {"de-AT"}}, {2}},
                                {{.queue_ids = {"4Xk2Z1"}}, {1}},
                                {{.queue_ids = {"4Xk2Z12"}}, {2}},
                                {{.message_ids = {"q.k.m3.mailroom@app.example"}}, {3}},
                                {{.domains = {"big.example"}, .subjects = {"news"}}, {3}}};
  for (const auto& [selectors, found] : cases) {
    CAPTURE(found);
    CHECK(rig.messages(selectors) == found);
    CHECK(rig.tokens({.mail = selectors}) == found);
  }
  const OperatorRig mailroom(rig.database);
  const std::vector<std::vector<std::string>> verbs{
      {"message", "list"},
      {"message", "cancel", "--dry-run"},
      {"audit"},
      {"reconcile", "--list", "accepted,rejected,unknown"},
      {"resend", "--dry-run"},
      {"revoke", "--dry-run"},
      {"message", "reschedule", "--send-after", "2h", "--dry-run"}};
  for (const auto& verb : verbs) {
    auto words = verb;
    words.insert(words.end(),
                 {"--domain", "@Big.example", "--role", "postgres", "--template", "x", "--subject", "n",
                  "--locale", "de", "--queue-id", "4X", "--message-id", "<a@b>"});
    const auto run = mailroom.mailroom(words);
    CAPTURE(words, run.errors);
    CHECK(run.status != 2);
    CHECK(run.status != 1);
  }
}

TEST_CASE("who may have got a mail twice is listed, counted and told with the same number") {
  MailRig rig;
  CHECK(rig.tokens({.doubt = selection::Doubt::perhaps_twice}) == Ids{2, 4});
  CHECK(rig.tokens({.doubt = selection::Doubt::in_flight}) == Ids{2, 4});
  const auto session = attach_sender(rig.database);
  const auto lease = session->claim({.limit = 100, .partial = true});
  REQUIRE(lease.lease);
  rig.connection->run("UPDATE mailroom_deliveries SET batch = $1", lease.lease->batch);
  CHECK(rig.tokens({.doubt = selection::Doubt::in_flight}) == Ids{1, 2, 3, 4});
  session->claim({.limit = 0, .receipt = claim::Receipt{*lease.lease, {.emitted = 4}}});
  const OperatorRig mailroom(rig.database);
  const auto list = mailroom.mailroom({"reconcile", "--list", "perhaps_twice"});
  CAPTURE(list.output, list.errors);
  CHECK(list.output.find("bob@small.example") != std::string::npos);
  CHECK(list.output.find("accepted once for certain, and perhaps once more") != std::string::npos);
  CHECK(list.output.find("mia@sub.big.example") != std::string::npos);
  CHECK(list.output.find("ada@big.example") == std::string::npos);
  const auto status = mailroom.mailroom({"status"});
  CHECK(status.output.find("2 perhaps twice") != std::string::npos);
  CHECK(status.output.find("mailroom reconcile --list perhaps_twice") != std::string::npos);
  const auto json = mailroom.mailroom({"audit", "--outcome", "perhaps_twice", "-o", "json"});
  CHECK(count(json.output, "\"perhaps\":1") == 1);
  CHECK(count(json.output, "\"perhaps\":2") == 1);
  const auto audit = mailroom.mailroom({"audit", "token:2"});
  CHECK(audit.output.find("once for certain, and perhaps once more") != std::string::npos);
}

TEST_CASE("the mails of a day are counted by role, action, domain and day, with what was rejected") {
  MailRig rig;
  const auto now = rig.connection->server_time();
  const auto count_by = [&](const std::vector<messages::CountedBy>& by) {
    return messages::count_mails(*rig.connection, by, now - std::chrono::hours(1),
                                 now + std::chrono::hours(1));
  };
  const auto domains = count_by({messages::CountedBy::domain});
  REQUIRE(domains.size() == 3);
  CHECK(domains[0].values == std::vector<std::string>{"big.example"});
  CHECK(domains[0].mails == 2);
  CHECK(domains[0].accepted == 1);
  CHECK(domains[0].rejected == 1);
  CHECK(domains[0].rejected_part() == 0.5);
  const auto roles = count_by({messages::CountedBy::role, messages::CountedBy::action});
  REQUIRE(roles.size() == 2);
  CHECK(roles[1].values == std::vector<std::string>{"billing", "message"});
  CHECK(roles[1].perhaps_twice == 1);
  CHECK(count_by({messages::CountedBy::day}).size() <= 2);
}

TEST_CASE("messages that wait for their time are moved to another one, and no others") {
  DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run(
      "INSERT INTO mailroom_messages (recipients, subject, text, send_after) SELECT ARRAY['a@x.example'], 's', "
      "'t', CASE WHEN n > 1 THEN now() + interval '1 hour' END FROM generate_series(1, 3) n");
  const OperatorRig mailroom(rig.database);
  const auto run = mailroom.mailroom(
      {"--yes", "message", "reschedule", "--recipient", "a@x.example", "--send-after", "5h"});
  CAPTURE(run.output, run.errors);
  CHECK(run.status == 0);
  CHECK(run.output.find("2 messages would leave from ") != std::string::npos);
  CHECK(run.output.find("done: 2 messages moved") != std::string::npos);
  CHECK(value<int>(connection,
                   "SELECT count(*) FROM mailroom_schedule WHERE send_after > now() + interval '4 hours'") ==
        2);
  const auto named = mailroom.mailroom({"--yes", "message", "reschedule", "1", "2", "--send-after", "now"});
  CHECK(named.output.find("1 message does not wait for its time") != std::string::npos);
  CHECK(named.output.find("1 message would leave at once") != std::string::npos);
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_schedule WHERE send_after <= now()") == 1);
  // What the owner of messages does with them is no operation, unless he gives a reason.
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_operations") == 0);
  mailroom.mailroom(
      {"--yes", "message", "reschedule", "3", "--send-after", "2101-01-01T09:30", "--reason", "not yet"});
  CHECK(value<std::string>(connection,
                           "SELECT concat_ws(' ', kind, reason, details->>'message', details->>'after') FROM "
                           "mailroom_operations") == "reschedule message not yet 3 2101-01-01T09:30:00Z");
  connection.run("UPDATE mailroom_messages SET owner = 0 WHERE id = 3");
  mailroom.mailroom({"--yes", "message", "reschedule", "3", "--send-after", "2h"});
  CHECK(value<std::string>(connection,
                           "SELECT details->>'before' FROM mailroom_operations ORDER BY id DESC LIMIT 1") ==
        "2101-01-01T09:30:00Z");
  const auto history = mailroom.mailroom({"audit", "message:3"});
  CHECK(history.output.find("message-rescheduled  message 3 2101-01-01T09:30:00Z -> ") != std::string::npos);
}

}  // namespace mailroom::test::mail_selectors_test
