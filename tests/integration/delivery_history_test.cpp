// The outcomes of mails in the histories of `audit` and the events of `tail`.

#include "cmd/audit/audit_report.hpp"
#include "cmd/events/event_text.hpp"
#include "support/delivery_rig.hpp"
#include "support/history_play.hpp"
#include "support/mail_rows.hpp"
#include "support/test_collector.hpp"
#include "support/test_feed.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::delivery_history_test {
namespace {

struct MailRig : DeliveryRig {
  using DeliveryRig::DeliveryRig;

  void play(std::int64_t token, const std::string& state, std::optional<int> code = {},
            std::optional<std::string> reply = {}) {
    record(*connection, {.token = token, .state = state, .code = code, .reply = std::move(reply)});
  }
  audit::History token(std::int64_t id) {
    return audit::read_token_history(*connection, id, {.queues = {"mailroom"}});
  }
  std::string sentence(std::int64_t id) {
    const auto history = token(id);
    return cmd::status_text(history.tokens.at(0), history.now);
  }
};

/// The outcomes of the mails of a history, in order.
Names mails_of(const audit::History& history) {
  Names all;
  for (const auto& entry : history.timeline.entries) {
    if (const auto* mail = entry.delivery()) all.push_back(cmd::delivery_text(*mail));
  }
  return all;
}

Shown past(const TestDatabase& database, feed::HistoryRequest history, const feed::EventFilter& filter = {}) {
  TestFeed feed(database, history, filter);
  Shown shown;
  for (const auto& event : feed.take())
    shown.push_back(short_text(event));
  return shown;
}

feed::EventFilter mails_only() {
  return {.action = {}, .accounts = {}, .states = {"delivery"}};
}

}  // namespace

TEST_CASE("an audit after real deliveries shows each attempt with the relay's words") {
  MailRig rig(3);
  TestRelay strict({.play = [](const RelayMoment& moment) {
    if (moment.step != RelayStep::rcpt) return RelayAnswer{};
    if (moment.recipient.find("user2@") == 0) return RelayAnswer::reply("451 4.7.1 greylisted");
    if (moment.recipient.find("user3@") == 0) return RelayAnswer::reply("550 5.1.1 no such user");
    return RelayAnswer{};
  }});
  TestRelay willing(
      {.play = TestRelay::at(RelayStep::end, RelayAnswer::reply("250 2.0.0 Ok: queued as 4Z1"))});
  REQUIRE(TestSender(rig.database.conninfo(), strict.url(), {"--once"}).wait() == 0);
  CHECK(rig.sentence(2).find("not accepted yet: deferred, the next attempt in 1") != std::string::npos);
  CHECK(rig.sentence(2).find("s: 451 4.7.1 greylisted; not consumed") != std::string::npos);
  rig.connection->run("UPDATE mailroom_deliveries SET not_before = '-infinity' WHERE token = 2");
  REQUIRE(TestSender(rig.database.conninfo(), willing.url(), {"--once"}).wait() == 0);

  const auto sink = "127.0.0.1:" + std::to_string(strict.port());
  const auto other_sink = "127.0.0.1:" + std::to_string(willing.port());
  const auto history = audit::read_account_history(*rig.connection, 2, {}, {.queues = {"mailroom"}});
  CHECK(mails_of(history) ==
        Names{"deferred, " + sink + " for user2@test.example: 451 4.7.1 greylisted",
              "accepted by " + other_sink + " for user2@test.example: 250 2.0.0 Ok: queued as 4Z1"});
  // The batch of the deferred mail is not told again as one that skipped the token.
  CHECK(event_names(history.timeline) == Names{"created", "issued", "delivery", "delivery", "emitted"});
  CHECK(history.tokens.at(0).deliveries.at(0).accepted == 1);
  CHECK(history.tokens.at(0).deliveries.at(0).delivery.counted == 2);
  CHECK(rig.sentence(2).find(" by " + other_sink + ": 250 2.0.0 Ok: queued as 4Z1; not consumed") !=
        std::string::npos);
  CHECK(rig.sentence(3).find("not accepted: rejected ") != std::string::npos);
  CHECK(rig.sentence(3).find(" by " + sink + ": 550 5.1.1 no such user") != std::string::npos);
  CHECK(past(rig.database, TestFeed::everything(), mails_only()).size() == 4);
}

TEST_CASE("a batch's history has the outcomes that it recorded, and no others") {
  MailRig rig(2);
  TestRelay deferring({.play = TestRelay::at(RelayStep::rcpt, RelayAnswer::reply("451 4.7.1 greylisted"))});
  REQUIRE(TestSender(rig.database.conninfo(), deferring.url(), {"--once"}).wait() == 0);
  rig.connection->run("UPDATE mailroom_deliveries SET not_before = '-infinity' WHERE token = 2");
  TestRelay willing;
  REQUIRE(TestSender(rig.database.conninfo(), willing.url(), {"--once"}).wait() == 0);
  const auto batches = rig.connection->run(
      "SELECT id FROM mailroom_batches WHERE ids <> '{}' OR skipped_ids <> '{}' ORDER BY id");
  REQUIRE(batches.size() == 2);
  const auto outcomes = [&](pqxx::result::size_type row) {
    Names all;
    const auto history = audit::read_batch_history(*rig.connection, batches[row][0].as<std::int64_t>(), {});
    for (const auto& entry : history.timeline.entries) {
      if (entry.delivery() != nullptr) all.push_back(short_text(entry));
    }
    return all;
  };
  CHECK(outcomes(0) == Names{"delivery deferred 1", "delivery deferred 2"});
  CHECK(outcomes(1) == Names{"delivery accepted 2"});
}

TEST_CASE(
    "a token without a mail is told as before, and a mail of another queue beside what this queue did") {
  MailRig rig(1);
  emit(*attach(rig.database));
  const auto before = rig.sentence(1);
  CHECK(before.find("emitted once") != std::string::npos);
  CHECK(mails_of(rig.token(1)).empty());
  rig.connection->run("INSERT INTO jobs VALUES ('second', 0)");
  record(*rig.connection, {.token = 1, .state = "accepted", .code = 250, .reply = "ok", .queue = "second"});
  const auto after = rig.sentence(1);
  INFO(after);
  CHECK(after.find("token 1 (activation): in queue second, accepted once") == 0);
  CHECK(after.find("; emitted once") != std::string::npos);
}

TEST_CASE("a mail that was accepted, replayed and given back keeps its acceptance") {
  MailRig rig(1);
  rig.play(1, "accepted", 250, "queued as 4Z1");
  rig.play(1, "deferred");
  CHECK(mails_of(rig.token(1)) ==
        Names{"accepted by relay.example:25: 250 queued as 4Z1", "deferred without an attempt"});
  CHECK(rig.sentence(1).find("accepted once") != std::string::npos);
  CHECK(past(rig.database, TestFeed::everything(), mails_only()) ==
        Shown{"delivery accepted 1", "delivery deferred 1"});
  rig.play(1, "rejected", 550, "no");
  CHECK(past(rig.database, TestFeed::everything(), mails_only()) ==
        Shown{"delivery accepted 1", "delivery deferred 1", "delivery rejected 1"});
}

TEST_CASE("outcomes of an earlier token with the same id are not those of the present one") {
  MailRig rig(1);
  rig.play(1, "accepted", 250, "queued as 4Z1");
  rig.connection->run(
      "UPDATE mailroom_deliveries SET last_at = last_at - interval '1 min', accepted_at = last_at - interval '1 min'");
  CHECK(rig.sentence(1).find("accepted once") == std::string::npos);
  CHECK(mails_of(rig.token(1)).empty());
  feed::EventFilter filter;
  filter.accounts = {1};
  CHECK(past(rig.database, TestFeed::everything(), filter) == Shown{"created 1"});
  TestFeed feed(rig.database, TestFeed::everything(), mails_only());
  const auto events = feed.take();
  REQUIRE(events.size() == 1);
  CHECK(events[0].account() == nullptr);
}

TEST_CASE("the mail of a deleted token is an event without an account") {
  MailRig rig(1);
  rig.play(1, "deferred", 451, "later");
  rig.connection->run("DELETE FROM accounts");
  rig.play(1, "deferred", 451, "later");
  CHECK(past(rig.database, TestFeed::everything(), mails_only()) ==
        Shown{"delivery deferred 1", "delivery cancelled 1"});
  CHECK(mails_of(rig.token(1)).back() == "cancelled: the token was deleted");
}

TEST_CASE("the tail shows each new outcome of a mail once, however often its row changes") {
  MailRig rig(2);
  rig.play(1, "deferred", 451, "one");
  TestFeed feed(rig.database);
  CHECK(feed.poll() == Shown{});
  rig.play(1, "deferred", 451, "two");
  CHECK(feed.poll() == Shown{"delivery deferred 1"});
  CHECK(feed.poll() == Shown{});
  rig.play(1, "deferred", 451, "three");
  rig.play(2, "rejected", 550, "no");
  rig.play(1, "accepted", 250, "queued as 4Z1");
  CHECK(feed.poll() == Shown{"delivery deferred 1", "delivery rejected 2", "delivery accepted 1"});
  rig.connection->run("UPDATE mailroom_deliveries SET unknowns = 1");
  CHECK(feed.poll() == Shown{});
  rig.play(1, "deferred");
  CHECK(feed.poll() == Shown{"delivery deferred 1"});
}

TEST_CASE("the tail shows an outcome that is committed late") {
  MailRig rig(2);
  TestFeed feed(rig.database);
  const auto late = rig.database.connect();
  late->run("BEGIN");
  record(*late, {.token = 1, .state = "accepted", .code = 250, .reply = "ok"});
  rig.play(2, "accepted", 250, "ok");
  CHECK(feed.poll() == Shown{"delivery accepted 2"});
  late->run("COMMIT");
  CHECK(feed.poll() == Shown{"delivery accepted 1"});
}

TEST_CASE("the last N mails are found, however old they are") {
  MailRig rig(4);
  rig.connection->run("UPDATE tokens SET created_at = created_at - 40 * 86400");
  const auto record_at = [&](std::int64_t token, const std::string& age) {
    rig.play(token, "rejected", 550, "no");
    rig.connection->run("UPDATE mailroom_deliveries SET last_at = now() - $2::interval WHERE token = $1",
                        token, age);
  };
  record_at(3, "30 days");
  record_at(1, "5 hours");
  record_at(2, "20 minutes");
  record_at(4, "10 minutes");
  const auto last = [&](std::int64_t count) {
    feed::HistoryRequest request;
    request.last = count;
    return past(rig.database, request, mails_only());
  };
  CHECK(last(1) == Shown{"delivery rejected 4"});
  CHECK(last(2) == Shown{"delivery rejected 2", "delivery rejected 4"});
  CHECK(last(3) == Shown{"delivery rejected 1", "delivery rejected 2", "delivery rejected 4"});
  CHECK(last(9) ==
        Shown{"delivery rejected 3", "delivery rejected 1", "delivery rejected 2", "delivery rejected 4"});
}

}  // namespace mailroom::test::delivery_history_test
