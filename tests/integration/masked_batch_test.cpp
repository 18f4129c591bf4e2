// A batch whose tokens lie between those of other queues is stored as one range with a mask. Whatever reads
// or changes the batch sees its own tokens only.

#include "health/queue_health.hpp"
#include "queue/batch_lookup.hpp"
#include "status/queue_status.hpp"
#include "support/catch.hpp"
#include "support/prune_rig.hpp"

namespace mailroom::test::masked_batch_test {
namespace {

/// A queue of recoveries. Of the tokens 1 to 20, the odd ones are recoveries.
struct Rig : DatabaseRig {
  std::unique_ptr<claim::PgQueueSession> session;

  Rig() {
    insert_accounts(*connection, 20);
    connection->run("UPDATE accounts SET status = 'active' WHERE id > 10");
    connection->run("TRUNCATE tokens RESTART IDENTITY");
    connection->run(
        "SELECT mailroom_create_queue('recovery', 0, '{\"actions\": [\"password_recovery\"]}', 'token_insert')");
    for (int i = 0; i < 10; ++i)
      connection->run(
          "INSERT INTO tokens (account, action) VALUES (11, 'password_recovery'), (1, 'activation')");
    session = attach(database, "recovery");
  }

  claim::Lease claim(int limit) const {
    const auto reply = session->claim({.limit = limit, .partial = true});
    REQUIRE(reply.lease);
    return *reply.lease;
  }

  Ids recorded(std::int64_t batch) const {
    return ids(*connection,
               "SELECT x FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g, "
               "generate_series(lower(g), upper(g) - 1) x WHERE b.id = " +
                   std::to_string(batch) + " ORDER BY x");
  }

  bool is_masked(std::int64_t batch) const {
    return value<bool>(*connection,
                       "SELECT ids_mask IS NOT NULL AND cardinality(ARRAY(SELECT unnest(ids))) = 1 "
                       "FROM mailroom_batches WHERE id = " +
                           std::to_string(batch));
  }
};

}  // namespace

TEST_CASE("a batch between tokens of another action is one range, and leases its own tokens") {
  const Rig rig;
  const auto lease = rig.claim(4);
  CHECK(rig.is_masked(lease.batch));
  CHECK(rig.recorded(lease.batch) == Ids{1, 3, 5, 7});
  CHECK(fetch_ids(*rig.session, lease) == Ids{1, 3, 5, 7});
  // A token that is deleted meanwhile makes no other one part of the batch.
  rig.connection->run("DELETE FROM tokens WHERE id IN (2, 3)");
  CHECK(fetch_ids(*rig.session, lease) == Ids{1, 5, 7});
  CHECK(rig.recorded(lease.batch) == Ids{1, 3, 5, 7});
}

TEST_CASE("a batch without foreign tokens between its own needs no mask") {
  const Rig rig;
  rig.connection->run(
      "INSERT INTO tokens (account, action) SELECT 11, 'password_recovery' FROM generate_series(1, 6)");
  rig.connection->run("SELECT mailroom_rewind('recovery', 20, 100, '{}')");
  const auto lease = rig.claim(6);
  CHECK_FALSE(rig.is_masked(lease.batch));
  CHECK(rig.recorded(lease.batch) == Ids{21, 22, 23, 24, 25, 26});
}

TEST_CASE("an acknowledgement with skipped tokens leaves the emitted ones of a masked batch") {
  const Rig rig;
  const auto lease = rig.claim(4);
  rig.connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 11");
  rig.connection->run("INSERT INTO accounts (email, login, status) VALUES ('x@example.com', 'x', 'active')");
  const claim::Receipt receipt{lease, {.emitted = 2, .wrong_status = 2, .skipped_ids = {3, 7}}};
  CHECK(rig.session->claim({.limit = 4, .partial = true, .receipt = receipt}).receipt_void == false);
  CHECK(rig.recorded(lease.batch) == Ids{1, 5});
  const auto connection = rig.database.connect();
  connection->transact([&](pqxx::work& transaction) {
    const auto batch = queue::find_batch(transaction, lease.batch);
    REQUIRE(batch);
    CHECK(batch->size == 4);
    CHECK(selection::count_ids(batch->tokens) == 4);
    CHECK(selection::count_ids(batch->skipped_ids) == 2);
  });
}

TEST_CASE("a take-over leases the tokens of a masked batch, and a rewind cuts them out of it") {
  const Rig rig;
  const auto lease = rig.claim(4);
  const auto again = rig.session->claim({.limit = 4, .partial = true});
  REQUIRE(again.lease);
  CHECK(again.lease->batch == lease.batch);
  CHECK(again.lease->attempt == 2);
  CHECK(fetch_ids(*rig.session, *again.lease) == Ids{1, 3, 5, 7});
  rig.connection->run("SELECT mailroom_rewind('recovery', 4, 100, '{}')");
  CHECK(rig.recorded(lease.batch) == Ids{1, 3});
  CHECK(value<std::string>(*rig.connection,
                           "SELECT details->'cut'->0->>'ids' FROM mailroom_operations "
                           "ORDER BY id DESC LIMIT 1") == "{[5,6),[7,8)}");
  CHECK(fetch_ids(*rig.session, *again.lease) == Ids{1, 3});
}

TEST_CASE("a token between those of a masked batch belongs to no batch of that queue") {
  const Rig rig;
  drain(*rig.session, 4);
  CHECK(ids(*rig.connection,
            "SELECT mailroom_batches_of(ARRAY[4], now() - interval '1 day', now() + interval '1 day')")
            .empty());
  CHECK(ids(*rig.connection,
            "SELECT DISTINCT mailroom_batches_of(ARRAY[5], now() - interval '1 day', "
            "now() + interval '1 day')")
            .size() == 1);
  CHECK(value<std::string>(*rig.connection, "SELECT mailroom_emitted_ids('recovery', 0, '[1,6)')::text") ==
        "{[1,2),[3,4),[5,6)}");
}

TEST_CASE("the fix for a dead masked batch emits its own tokens again") {
  const Rig rig;
  const auto lease = rig.claim(4);
  rig.connection->run("UPDATE mailroom_batches SET dead_at = clock_timestamp() WHERE id = $1", lease.batch);
  const auto status = status::read_queue_status(*rig.connection, "recovery");
  REQUIRE(status.dead.size() == 1);
  CHECK(status.dead.front().tokens == 4);
  const auto findings = health::judge_queue(status, {});
  const auto dead =
      std::find_if(findings.begin(), findings.end(), [](const auto& each) { return each.code == "dead"; });
  REQUIRE(dead != findings.end());
  CHECK(value<int>(*rig.connection, dead->fix) == 4);
  CHECK(fetch_ids(*rig.session, rig.claim(10)) == Ids{1, 3, 5, 7, 9, 11, 13, 15, 17, 19});
}

TEST_CASE("prune removes the record of a masked batch when its own tokens are gone") {
  const Rig rig;
  drain(*rig.session, 4);
  drain(*attach(rig.database), 20);
  age_batches(*rig.connection);
  rig.connection->run(
      "UPDATE tokens SET consumed_at = extract(epoch FROM now()) - 86400 * 31 "
      "WHERE action = 'password_recovery'");
  prune(rig.database);
  CHECK(ids(*rig.connection, "SELECT id FROM tokens WHERE action = 'password_recovery'").empty());
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM tokens") == 10);
  // The newest row is the state of the queue.
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches WHERE queue = 'recovery'") == 1);
}

}  // namespace mailroom::test::masked_batch_test
