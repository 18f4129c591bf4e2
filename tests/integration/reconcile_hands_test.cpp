// Hands in the database: whatever somebody changes or deletes leaves tokens that are unexplained.

#include "support/catch.hpp"
#include "support/reconcile_rig.hpp"
#include "support/several_queues.hpp"

namespace mailroom::test::reconcile_hands_test {
namespace {

/// Nine tokens in three batches, and what is unexplained after `sql`.
std::string after(const std::string& sql) {
  ReconcileRig rig;
  rig.emit(9);
  CHECK(rig.unexplained().empty());
  rig.hand(sql);
  return rig.unexplained();
}

/// A queue whose consumer records outcomes.
struct DeliveredRig : ReconcileRig {
  DeliveredRig() {
    session = attach_sender(database);
    insert_accounts(*connection, 4);
    deliver(4);
  }
  void deliver(int limit) {
    const auto reply = session->claim({.limit = limit, .partial = true});
    REQUIRE(reply.lease);
    claim::Receipt receipt{*reply.lease, {}};
    receipt.outcomes.emplace();
    for (const auto id : fetch_ids(*session, *reply.lease)) {
      const bool accepted = id != 4;
      receipt.outcomes->push_back({.token = id,
                                   .state = accepted ? fate::Outcome::accepted : fate::Outcome::rejected,
                                   .attempts = 1,
                                   .sink = "relay:25",
                                   .code = accepted ? 250 : 550,
                                   .reply = "answer"});
      if (accepted)
        ++receipt.counts.emitted;
      else
        receipt.counts.skipped_ids.push_back(id);
    }
    session->claim({.limit = 0, .receipt = receipt});
  }
};

}  // namespace

TEST_CASE("the record of a batch is deleted", "[reconcile]") {
  CHECK(after("DELETE FROM mailroom_batches WHERE id = 2") == "4-6");
  CHECK(after("DELETE FROM mailroom_batches WHERE id = 1") == "1-3");
  CHECK(after("DELETE FROM mailroom_batches WHERE id < 3") == "1-6");
}

TEST_CASE("ids of a batch are cut", "[reconcile]") {
  CHECK(after("UPDATE mailroom_batches SET ids = '{[4,5),[6,7)}' WHERE id = 2") == "5");
  CHECK(after("UPDATE mailroom_batches SET ids = '{}' WHERE id = 3") == "7-9");
}

TEST_CASE("ids are added to a batch", "[reconcile]") {
  CHECK(after("UPDATE mailroom_batches SET ids = '{[4,8)}' WHERE id = 2") == "7");
}

TEST_CASE("a batch is marked as emitted", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(3);
  insert_accounts(*rig.connection, 2, "more");
  REQUIRE(rig.session->claim({.limit = 2}).lease);
  rig.hand("UPDATE mailroom_batches SET emitted_at = clock_timestamp() WHERE emitted_at IS NULL");
  CHECK(rig.unexplained() == "4-5");
}

TEST_CASE("the cursor is moved by hand", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(3);
  insert_accounts(*rig.connection, 4, "more");
  rig.hand("UPDATE mailroom_batches SET cursor = 6 WHERE id = (SELECT max(id) FROM mailroom_batches)");
  CHECK(rig.unexplained() == "4-6");
  rig.drain();
  CHECK(rig.unexplained() == "4-6");
}

TEST_CASE("a queue is made by hand, with its cursor past some tokens", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 8);
  rig.hand("INSERT INTO jobs (job_type, last_seq) VALUES ('hand', 5)");
  CHECK(rig.unexplained("hand") == "1-5");
  CHECK(rig.classes("hand") == "3 waiting, 5 unexplained");
  const auto consumer = attach(rig.database, "hand");
  CHECK(drain(*consumer) == Ids{6, 7, 8});
  CHECK(rig.unexplained("hand") == "1-5");
}

TEST_CASE("the cursor is moved back by hand", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(6);
  rig.hand("UPDATE mailroom_batches SET cursor = 4 WHERE id = (SELECT max(id) FROM mailroom_batches)");
  rig.drain();
  CHECK(rig.unexplained() == "5-6");
}

TEST_CASE("the record of a rewind is deleted", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(6);
  rig.carry_out(to(2));
  rig.drain();
  CHECK(rig.classes() == "2 emitted, 4 emitted_again");
  rig.hand("DELETE FROM mailroom_operations");
  CHECK(rig.unexplained() == "3-6");
}

TEST_CASE("the record of a move forward is deleted", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 5);
  rig.carry_out(to(3));
  rig.drain();
  CHECK(rig.classes() == "2 emitted, 3 moved_past");
  rig.hand("DELETE FROM mailroom_operations");
  CHECK(rig.unexplained() == "1-3");
}

TEST_CASE("a gap is deleted", "[reconcile]") {
  ReconcileRig rig;
  const auto other = rig.database.connect("late");
  other->run("BEGIN");
  insert_accounts(*other, 2, "late");
  rig.emit(3);
  rig.hand("DELETE FROM mailroom_gaps");
  CHECK(rig.unexplained().empty());
  other->run("COMMIT");
  CHECK(rig.unexplained() == "1-2");
}

TEST_CASE("the list of skipped tokens is emptied", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 4);
  rig.hand("UPDATE accounts SET status = 'suspended' WHERE id IN (2, 3)");
  rig.drain();
  CHECK(rig.classes() == "2 emitted, 2 skipped");
  rig.hand("UPDATE mailroom_batches SET skipped_ids = '{}'");
  CHECK(rig.unexplained() == "2-3");
}

TEST_CASE("the counts of skipped tokens are reset", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 4);
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id IN (2, 3)");
  rig.drain();
  CHECK(rig.classes() == "2 emitted, 2 skipped");
  rig.hand("UPDATE mailroom_batches SET skipped_expired = 0");
  CHECK(rig.unexplained() == "2-3");
}

TEST_CASE("a token is inserted below the cursor", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(9);
  rig.hand("DELETE FROM tokens WHERE id = 5");
  rig.hand("SET session_replication_role = replica");
  rig.hand(
      "INSERT INTO tokens (id, account, action, created_at) VALUES "
      "(5, 1, 'activation', extract(epoch FROM now())::bigint + 2)");
  const auto later =
      reconcile::reconcile(*rig.connection, {.queues = {"mailroom"}, .until = "2100-01-01"}).queues.front();
  CHECK(unexplained_in(later) == "5");
}

TEST_CASE("ids are used again after a restore", "[reconcile]") {
  ReconcileRig rig;
  rig.emit(6);
  rig.hand(
      "UPDATE mailroom_batches SET claimed_at = claimed_at - interval '1 minute', emitted_at = emitted_at - interval '1 minute'");
  rig.hand("TRUNCATE tokens RESTART IDENTITY");
  insert_accounts(*rig.connection, 2, "new");
  CHECK(rig.unexplained() == "1-2");
}

TEST_CASE("rows are loaded with triggers off", "[reconcile]") {
  ReconcileRig rig;
  const auto other = rig.database.connect("loader");
  other->run("SET session_replication_role = replica");
  other->run("BEGIN");
  other->run(
      "INSERT INTO accounts (id, email, login, status) VALUES (100, 'x@mail.example', 'x', 'provisioned')");
  other->run(
      "INSERT INTO tokens (id, account, action) SELECT nextval('tokens_id_seq'), 100, 'activation' FROM generate_series(1, 2)");
  rig.emit(3);
  CHECK(rig.classes() == "3 emitted");
  rig.drain();
  // Its transaction had no id when it drew the ids, so the gap could not wait for it.
  rig.hand("DELETE FROM mailroom_gaps");
  other->run("COMMIT");
  CHECK(rig.unexplained() == "1-2");
}

TEST_CASE("the actions of a queue are changed by hand", "[reconcile]") {
  ReconcileRig rig;
  rig.emit_activations_alone();
  rig.hand("UPDATE mailroom_queues SET actions = NULL WHERE name = 'some'");
  CHECK(rig.unexplained("some") == "5");
  rig.hand("UPDATE mailroom_queues SET actions = '{password_recovery}' WHERE name = 'some'");
  CHECK(rig.unexplained("some") == "5-6");
}

TEST_CASE("the mask of a batch is changed", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 20);
  rig.hand("UPDATE accounts SET status = 'active' WHERE id > 10");
  rig.hand("TRUNCATE tokens RESTART IDENTITY");
  make_queue(*rig.connection, "recovery", recoveries_only);
  for (int i = 0; i < 5; ++i)
    rig.hand("INSERT INTO tokens (account, action) VALUES (11, 'password_recovery'), (1, 'activation')");
  rig.session = attach(rig.database, "recovery");
  rig.drain();
  CHECK(rig.classes("recovery") == "5 emitted");
  rig.hand(
      "UPDATE mailroom_batches SET ids_mask = set_bit(set_bit(ids_mask, 2, 0), 5, 1) WHERE ids_mask IS NOT NULL");
  CHECK(rig.unexplained("recovery") == "3, 6");
}

TEST_CASE("a delivery is deleted", "[reconcile]") {
  DeliveredRig rig;
  CHECK(rig.classes() == "3 accepted, 1 rejected");
  rig.hand("DELETE FROM mailroom_deliveries WHERE token = 2");
  CHECK(rig.unexplained() == "2");
  rig.hand("DELETE FROM mailroom_deliveries WHERE token = 4");
  CHECK(rig.unexplained() == "2, 4");
}

TEST_CASE("the batch of deliveries is deleted", "[reconcile]") {
  DeliveredRig rig;
  insert_accounts(*rig.connection, 1, "more");
  rig.deliver(1);
  CHECK(rig.unexplained().empty());
  rig.hand("DELETE FROM mailroom_batches WHERE id = 1");
  CHECK(rig.unexplained() == "1-4");
}

TEST_CASE("a deferred token has no time to be tried again", "[reconcile]") {
  DeliveredRig rig;
  rig.hand("UPDATE mailroom_deliveries SET state = 'deferred', not_before = 'infinity' WHERE token = 4");
  CHECK(rig.classes() == "3 accepted, 1 deferred");
  rig.hand("UPDATE mailroom_deliveries SET not_before = NULL WHERE token = 4");
  CHECK(rig.unexplained() == "4");
}

TEST_CASE("a batch is open where no claim looks for it", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 5);
  REQUIRE(rig.session->claim({.limit = 2}).lease);
  rig.hand(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "VALUES ('mailroom', '{}', 1, clock_timestamp(), 2, 100, '{}')");
  CHECK(rig.unexplained() == "1-2");
}

TEST_CASE("a batch is taken over from a session that lives on", "[reconcile]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 3);
  rig.hand("UPDATE tokens SET created_at = created_at - 12 * 3600");
  rig.drain();
  rig.hand(R"(
UPDATE mailroom_batches SET attempts = 2, collector = 1, claimed_at = claimed_at - interval '10 h',
  earlier_attempts = jsonb_build_array(jsonb_build_object(
    'attempt', 1, 'collector', collector, 'claimed_by', claimed_by, 'claimed_at', claimed_at - interval '11 h')))");
  CHECK(rig.classes() == "3 emitted_again");
  rig.emit(1, "more");
  CHECK(rig.unexplained() == "1-3");
}

}  // namespace mailroom::test::reconcile_hands_test
