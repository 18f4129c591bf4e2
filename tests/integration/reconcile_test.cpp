// The outcomes of tokens: each committed token has one.

#include "prune/pruner.hpp"
#include "support/catch.hpp"
#include "support/reconcile_rig.hpp"
#include "support/several_queues.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::reconcile_test {

using namespace std::chrono_literals;

TEST_CASE("tokens of a database without batches wait", "[reconcile]") {
  ReconcileRig rig;
  CHECK(rig.classes().empty());
  insert_accounts(*rig.connection, 3);
  CHECK(rig.classes() == "3 waiting");
  CHECK(rig.result().tokens == 3);
}

TEST_CASE("tokens are emitted, in flight or waiting", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(10);
  insert_accounts(*rig.connection, 6, "more");
  const auto reply = rig.session->claim({.limit = 4, .partial = true});
  REQUIRE(reply.lease);
  CHECK(rig.classes() == "10 emitted, 4 leased, 2 waiting");
}

TEST_CASE("tokens outside of the period are left out", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(5);
  rig.hand("UPDATE tokens SET created_at = created_at - 100000 WHERE id <= 2");
  CHECK(rig.classes() == "3 emitted");
  const auto older =
      reconcile::reconcile(*rig.connection, {.queues = {"mailroom"}, .since = "48h", .until = "24h"});
  CHECK(classes_of(older.queues.front()) == "2 emitted");
}

TEST_CASE("skipped tokens are counted with the reason", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 8);
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id IN (1, 2)");
  rig.hand("UPDATE tokens SET consumed_at = created_at WHERE id = 3");
  rig.hand("UPDATE accounts SET status = 'suspended' WHERE id = 5");
  const auto reply = rig.session->claim({.limit = 8, .partial = true});
  REQUIRE(reply.lease);
  const auto fetched = fetch_due(*rig.session, *reply.lease);
  rig.session->claim({.limit = 0, .receipt = claim::Receipt{*reply.lease, fetched.counts}});
  CHECK(rig.classes() == "4 emitted, 4 skipped");
  CHECK(explanations_of(rig.result(), fate::Outcome::skipped) ==
        "expired; consumed; wrong status or invalid");
}

TEST_CASE("a rewind and a replay explain a repetition", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(6);
  rig.carry_out(to(2));
  CHECK(rig.classes() == "6 emitted");
  rig.drain(2);
  CHECK(rig.classes() == "2 emitted, 4 emitted_again");
  const auto text = explanations_of(rig.result(), fate::Outcome::emitted_again);
  CHECK_THAT(text, Catch::Matchers::StartsWith("2 times: rewind by tester@host at "));
  CHECK_THAT(text, Catch::Matchers::EndsWith(": test"));
  rig.hand("SELECT mailroom_replay('mailroom', '{1,5}', '{}')");
  rig.drain();
  CHECK(rig.classes() == "1 emitted, 5 emitted_again");
  CHECK(explanations_of(rig.result(), fate::Outcome::emitted_again).find("3 times: replay by ") !=
        std::string::npos);
}

TEST_CASE("a replay waits until it is claimed", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 3);
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id = 2");
  rig.drain();
  CHECK(rig.classes() == "2 emitted, 1 skipped");
  rig.hand("UPDATE tokens SET expires_at = created_at + 900 WHERE id = 2");
  rig.hand("SELECT mailroom_replay('mailroom', '{2}', '{}')");
  CHECK(rig.classes() == "2 emitted, 1 in_replay");
  rig.drain();
  CHECK(rig.classes() == "3 emitted");
}

TEST_CASE("a move forward explains what was not emitted, and names the operator", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(2);
  insert_accounts(*rig.connection, 4, "more");
  rig.carry_out(to(5));
  rig.drain();
  CHECK(rig.classes() == "3 emitted, 3 moved_past");
  CHECK_THAT(explanations_of(rig.result(), fate::Outcome::moved_past),
             Catch::Matchers::StartsWith("rewind by tester@host at "));
  rig.carry_out(to(replay::RewindTarget::Kind::start));
  rig.drain();
  CHECK(rig.classes() == "3 emitted, 3 emitted_again");
}

TEST_CASE("a late commit is in a gap, with the session that holds it", "[reconcile]") {
  ReconcileRig rig;
  const auto other = rig.database.connect("late");
  const auto third = rig.database.connect("later");
  other->run("BEGIN");
  insert_accounts(*other, 1, "late");
  third->run("BEGIN");
  insert_accounts(*third, 1, "later");
  rig.emit(3);
  CHECK(rig.classes() == "3 emitted");
  other->run("COMMIT");
  CHECK(rig.classes() == "3 emitted, 1 in_gap");
  const auto holders = rig.result().gap_holders;
  // Others' transactions of the cluster, begun meanwhile, hold the gap as well until it is looked at again.
  REQUIRE(!holders.empty());
  CHECK(holders[0].find("later") != std::string::npos);
  third->run("ROLLBACK");
  rig.drain();
  CHECK(rig.classes() == "4 emitted");
}

TEST_CASE("a batch that was taken over is perhaps emitted twice", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 3);
  {
    const auto dying = attach(rig.database);
    REQUIRE(dying->claim({.limit = 2, .partial = true}).lease);
  }
  CHECK(rig.classes() == "2 leased, 1 waiting");
  rig.drain();
  CHECK(rig.classes() == "1 emitted, 2 emitted_again");
}

TEST_CASE("a dead letter is an outcome of its own", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 2);
  REQUIRE(rig.session->claim({.limit = 1}).lease);
  rig.hand("UPDATE mailroom_batches SET dead_at = clock_timestamp()");
  CHECK(rig.classes() == "1 waiting, 1 dead");
}

TEST_CASE("each queue accounts for the tokens of its actions", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 20);
  rig.hand("UPDATE accounts SET status = 'active' WHERE id > 10");
  rig.hand("TRUNCATE tokens RESTART IDENTITY");
  make_queue(*rig.connection, "recovery", recoveries_only);
  rig.hand(R"(SELECT mailroom_set_queue('mailroom', '{"actions": ["activation"]}', 'token_insert'))");
  for (int i = 0; i < 100; ++i)
    rig.hand("INSERT INTO tokens (account, action) VALUES (11, 'password_recovery'), (1, 'activation')");
  rig.session = attach(rig.database, "recovery");
  rig.drain(40);
  CHECK(value<int>(*rig.connection, "SELECT count(ids_mask) FROM mailroom_batches") == 3);
  CHECK(rig.classes("recovery") == "100 emitted");
  CHECK(rig.classes() == "100 waiting");
}

TEST_CASE("a change of its actions explains what a queue did not take", "[reconcile]") {
  ReconcileRig rig;
  rig.emit_activations_alone();
  CHECK(rig.classes("some") == "1 emitted");
  rig.hand("SELECT mailroom_set_queue('some', '{}', 'token_insert')");
  rig.hand("INSERT INTO tokens (account, action) VALUES (2, 'password_recovery'), (4, 'activation')");
  rig.drain();
  CHECK(rig.classes("some") == "3 emitted, 1 not_taken");
  CHECK_THAT(explanations_of(rig.result("some"), fate::Outcome::not_taken),
             Catch::Matchers::StartsWith("set queue by "));
  rig.hand(std::string("SELECT mailroom_set_queue('some', '") + activations_only + "', 'token_insert')");
  CHECK(rig.classes("some") == "2 emitted");
}

TEST_CASE("a queue that begins at the end has not taken older tokens", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(4);
  make_queue(*rig.connection, "new", "{}", 3);
  CHECK(rig.classes("new") == "1 waiting, 3 not_taken");
  rig.session = attach(rig.database, "new");
  rig.drain();
  CHECK(rig.classes("new") == "1 emitted, 3 not_taken");
  drop_queue(*rig.connection, "new");
  make_queue(*rig.connection, "new", "{}", 2);
  rig.session = attach(rig.database, "new");
  rig.drain();
  CHECK(rig.classes("new") == "1 emitted, 1 emitted_again, 2 not_taken");
  CHECK_THAT(explanations_of(rig.result("new"), fate::Outcome::emitted_again),
             Catch::Matchers::StartsWith("2 times: create queue by "));
}

TEST_CASE("a queue that goes on where another was takes over its gaps", "[reconcile]") {
  ReconcileRig rig;
  const auto other = rig.database.connect("late");
  other->run("BEGIN");
  insert_accounts(*other, 1, "late");
  rig.emit(3);
  rig.hand("SELECT mailroom_create_queue('next', 0, '{}', 'token_insert', 'mailroom')");
  other->run("COMMIT");
  CHECK(rig.classes("next") == "1 in_gap, 3 not_taken");
  rig.session = attach(rig.database, "next");
  rig.drain();
  CHECK(rig.classes("next") == "1 emitted, 3 not_taken");
}

TEST_CASE("tokens with reused ids count for the batches that had them", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(4);
  rig.hand(
      "UPDATE mailroom_batches SET claimed_at = claimed_at - interval '1 minute', emitted_at = emitted_at - interval '1 minute'");
  rig.hand("TRUNCATE tokens RESTART IDENTITY");
  insert_accounts(*rig.connection, 3, "new");
  rig.carry_out(to(0));
  rig.drain(2);
  CHECK(rig.classes() == "3 emitted");
}

TEST_CASE("what prune deletes explains tokens whose records are gone", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(6);
  rig.hand("DELETE FROM mailroom_batches WHERE id = 1");
  rig.hand(R"(INSERT INTO mailroom_operations (kind, actor, details)
SELECT 'prune', 'ops', jsonb_build_object('before', to_char((now() + interval '2 s') AT TIME ZONE 'UTC',
                                                           'YYYY-MM-DD"T"HH24:MI:SS"Z"')))");
  insert_accounts(*rig.connection, 1, "more");
  rig.drain();
  CHECK(rig.classes() == "4 emitted, 3 not_recorded");
}

TEST_CASE("a token whose expiry was changed after its claim had skipped it is skipped", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 5);
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id IN (2, 3)");
  rig.drain();
  rig.hand("UPDATE tokens SET expires_at = created_at + 900 WHERE id = 2");
  CHECK(rig.classes() == "3 emitted, 2 skipped");
  CHECK(explanations_of(rig.result(), fate::Outcome::skipped) == "expired; expired then, and extended since");
  rig.hand("UPDATE mailroom_batches SET skipped_expired = 1 WHERE skipped_expired = 2");
  CHECK(rig.unexplained() == "2");
}

TEST_CASE("a token whose batch was pruned is not unexplained", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 6);
  rig.hand("UPDATE accounts SET status = 'suspended' WHERE id <= 3");
  rig.drain(3);
  CHECK(rig.classes() == "3 emitted, 3 skipped");
  rig.hand(
      "UPDATE mailroom_batches SET claimed_at = claimed_at - interval '31 days', emitted_at = emitted_at - interval '31 days'");
  rig.hand("UPDATE tokens SET created_at = created_at - 31 * 86400, expires_at = expires_at - 31 * 86400");
  rig.hand("UPDATE tokens SET expires_at = expires_at + 40 * 86400 WHERE id = 2");
  rig.emit(2, "new");
  const auto since = [&] {
    return reconcile::reconcile(*rig.connection, {.queues = {"mailroom"}, .since = "960h"}).queues.front();
  };
  CHECK(classes_of(since()) == "5 emitted, 3 skipped");
  prune::Pruner(*rig.database.connect(),
                {.records = std::chrono::hours(24 * 30), .contents = std::chrono::hours(24 * 30)}, 20)
      .remove({.actor = "test", .reason = ""}, [](const auto&) { return true; });
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches WHERE id = 1") == 0);
  CHECK(classes_of(since()) == "2 emitted, 1 not_recorded");
}

}  // namespace mailroom::test::reconcile_test
