// Outcomes of deliveries: how they are recorded with the acknowledgement, and how deferred tokens are claimed
// again.

#include <fmt/format.h>
#include <random>
#include <set>

#include "replay/rewind.hpp"
#include "support/catch.hpp"
#include "support/outcome_rig.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::outcome_test {
TEST_CASE("an acknowledgement records the outcome of each token of the batch", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 4);
  const auto lease = rig.claim(4).lease;
  REQUIRE(lease);
  auto rejected = outcome(2, fate::Outcome::rejected);
  rejected.code = 550;
  rejected.reply = "no \"such\" user\\ \xc3\xa9";
  const auto reply = rig.claim(
      4, receipt_of(*lease, {outcome(1, fate::Outcome::accepted), rejected,
                             outcome(3, fate::Outcome::deferred, 3600), outcome(4, fate::Outcome::unknown)}));
  CHECK_FALSE(reply.lease);
  CHECK_FALSE(reply.receipt_void);
  CHECK(rig.deliveries() == "accepted 1, rejected 1, expired 1, unknown 1");
  CHECK(value<std::string>(*rig.connection,
                           "SELECT code || ' ' || reply || ' ' || sink || ' ' || batch FROM "
                           "mailroom_deliveries WHERE token = 2") ==
        fmt::format("550 {} relay:25 {}", rejected.reply, lease->batch));
  CHECK(value<std::string>(*rig.connection,
                           "SELECT string_agg((accepted_at IS NOT NULL)::text, ' ' ORDER BY token) "
                           "FROM mailroom_deliveries") == "true false false false");
  const auto batch = rig.connection->run(
      fmt::format("SELECT ids, skipped_ids, emitted FROM mailroom_batches WHERE id = {}", lease->batch))[0];
  CHECK(std::string(batch[0].c_str()) == "{[1,2)}");
  CHECK(std::string(batch[1].c_str()) == "{[2,5)}");
  CHECK(batch[2].as<int>() == 1);
}

TEST_CASE("a deferred token is claimed again when its time has come, and not before", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  CHECK(rig.deliver(2, fate::Outcome::deferred, 300) == Ids{1, 2});
  CHECK(rig.deliveries() == "deferred 1 waits, deferred 1 waits");
  CHECK(rig.deliver(2, fate::Outcome::accepted).empty());
  CHECK(rig.session->claim({.limit = 2, .partial = true, .routine = true}).last == 2);
  rig.connection->run("UPDATE mailroom_deliveries SET not_before = clock_timestamp() WHERE token = 2");
  const auto reply = rig.session->claim({.limit = 2, .partial = true, .routine = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*rig.session, *reply.lease) == Ids{2});
  CHECK(rig.deliveries() == "deferred 1 waits, deferred 1");
  rig.claim(0, receipt_of(*reply.lease, {outcome(2, fate::Outcome::accepted)}));
  CHECK(rig.deliveries() == "deferred 1 waits, accepted 2");
  CHECK(value<std::string>(*rig.connection,
                           "SELECT earlier_attempts->0->>'state' FROM mailroom_deliveries "
                           "WHERE token = 2") == "deferred");
}

TEST_CASE("without partial, deferred tokens wait for a full batch like others", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::deferred, 1);
  due_now(*rig.connection);
  const auto none = rig.session->claim({.limit = 2});
  CHECK_FALSE(none.lease);
  CHECK(none.pending == 1);
  CHECK(rig.deliveries() == "deferred 1 waits");
  insert_accounts(*rig.connection, 1, "more");
  const auto full = rig.session->claim({.limit = 2});
  REQUIRE(full.lease);
  CHECK(fetch_ids(*rig.session, *full.lease) == Ids{1, 2});
}

TEST_CASE("a token given back counts no attempt and keeps the last answer", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::deferred, 1);
  for (int i = 0; i < 3; ++i) {
    due_now(*rig.connection);
    const auto lease = rig.claim(1).lease;
    REQUIRE(lease);
    rig.claim(0, receipt_of(*lease, {given_back(1)}));
  }
  CHECK(rig.deliveries() == "deferred 1 waits");
  CHECK(value<std::string>(*rig.connection,
                           "SELECT code || ' ' || reply || coalesce(earlier_attempts::text, '') "
                           "FROM mailroom_deliveries") == "451 deferred");
}

TEST_CASE("rule 1: after a rewind the cursor alone emits tokens that waited above its target", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 3);
  rig.deliver(3, fate::Outcome::deferred, 60);
  rig.carry_out(to(1));
  CHECK(rig.deliveries() == "deferred 1 waits, cancelled 1, cancelled 1");
  due_now(*rig.connection);
  CHECK(rig.deliver(10, fate::Outcome::accepted) == Ids{1, 2, 3});
  CHECK(rig.deliver(10, fate::Outcome::accepted).empty());
  CHECK(rig.deliveries() == "accepted 2, accepted 2, accepted 2");
}

TEST_CASE("rule 1: a rewind forward leaves waiting tokens", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  rig.deliver(1, fate::Outcome::deferred, 60);
  rig.carry_out(to(2));
  CHECK(rig.deliveries() == "deferred 1 waits");
  due_now(*rig.connection);
  CHECK(rig.deliver(10, fate::Outcome::accepted) == Ids{1});
}

TEST_CASE("rule 1: a replayed token no longer waits", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  rig.deliver(2, fate::Outcome::deferred, 60);
  rig.connection->run("SELECT mailroom_replay('mailroom', '{1}', '{}')");
  CHECK(rig.deliveries() == "deferred 1, deferred 1 waits");
  due_now(*rig.connection);
  auto ids = rig.deliver(10, fate::Outcome::accepted);
  CHECK(ids == Ids{1, 2});
  CHECK(rig.deliver(10, fate::Outcome::accepted).empty());
}

TEST_CASE("rule 1: a rewind or a replay lets a token be unknown anew", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  rig.deliver(2, fate::Outcome::unknown);
  rig.connection->run("UPDATE mailroom_deliveries SET unknowns = 2");
  rig.connection->run("SELECT mailroom_replay('mailroom', '{1}', '{}')");
  CHECK(value<int>(*rig.connection, "SELECT unknowns FROM mailroom_deliveries WHERE token = 1") == 0);
  CHECK(value<int>(*rig.connection, "SELECT unknowns FROM mailroom_deliveries WHERE token = 2") == 2);
  rig.carry_out(to(0));
  CHECK(value<int>(*rig.connection, "SELECT sum(unknowns) FROM mailroom_deliveries") == 0);
}

TEST_CASE("rule 2: a receipt that is repeated changes nothing", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  const auto lease = rig.claim(1).lease;
  REQUIRE(lease);
  const auto deferred = receipt_of(*lease, {outcome(1, fate::Outcome::deferred, 0)});
  rig.claim(0, deferred);
  CHECK(rig.deliver(1, fate::Outcome::accepted) == Ids{1});
  CHECK_FALSE(rig.claim(0, deferred).receipt_void);
  CHECK(rig.deliveries() == "accepted 2");
  rig.connection->run("DELETE FROM mailroom_deliveries");
  CHECK_FALSE(rig.claim(0, deferred).receipt_void);
  CHECK(rig.deliveries().empty());
}

TEST_CASE("rule 2: what comes late of a batch that was taken over is an earlier attempt", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 3);
  const auto earlier = [&] {
    return value<std::string>(
        *rig.connection,
        "SELECT coalesce(string_agg(concat_ws(' ', token, a->>'state', a->>'attempt', a->>'address'), ', ' ORDER "
        "BY token, n), '') FROM mailroom_deliveries, jsonb_array_elements(earlier_attempts) WITH ORDINALITY e (a, n)");
  };
  const auto first = rig.claim(3).lease;
  const auto again = rig.claim(3).lease;
  REQUIRE(first);
  REQUIRE(again);
  CHECK(again->attempt == 2);
  // The third token was not tried.
  const auto late = receipt_of(
      *first, {outcome(1, fate::Outcome::accepted), outcome(2, fate::Outcome::deferred, 60), given_back(3)});
  CHECK(rig.claim(0, late).receipt_void);
  const std::string kept = "1 accepted 1 user1@test.example, 2 deferred 1 user2@test.example";
  CHECK(earlier() == kept);
  // The batch is leased: nothing of it waits for a time of its own.
  CHECK(rig.deliveries() == "deferred 1, deferred 1");
  // Its reply was lost.
  CHECK(rig.claim(0, late).receipt_void);
  CHECK(earlier() == kept);
  rig.claim(0,
            receipt_of(*again, {outcome(1, fate::Outcome::rejected), outcome(2, fate::Outcome::deferred, 60),
                                outcome(3, fate::Outcome::accepted)}));
  CHECK(rig.deliveries() == "rejected 2, deferred 2 waits, accepted 1");
  CHECK(earlier() == kept);
  CHECK(
      value<std::string>(*rig.connection,
                         "SELECT string_agg(token::text, ' ' ORDER BY token) FROM mailroom_deliveries WHERE "
                         "accepted_at IS NOT NULL") == "1 3");
  // Once more, after the batch was acknowledged: of tokens that have a record.
  CHECK(rig.claim(0, late).receipt_void);
  CHECK(earlier() == kept);
  CHECK(rig.deliveries() == "rejected 2, deferred 2 waits, accepted 1");
}

TEST_CASE("rule 2: what comes late of a batch that was acknowledged meanwhile stays on record", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  const auto first = rig.claim(2).lease;
  const auto again = rig.claim(2).lease;
  REQUIRE(again);
  rig.claim(0,
            receipt_of(*again, {outcome(1, fate::Outcome::rejected), outcome(2, fate::Outcome::accepted)}));
  CHECK(rig.claim(0, receipt_of(*first,
                                {outcome(1, fate::Outcome::accepted), outcome(2, fate::Outcome::unknown)}))
            .receipt_void);
  CHECK(rig.deliveries() == "rejected 2, accepted 2");
  CHECK(value<std::string>(
            *rig.connection,
            "SELECT string_agg(concat_ws(' ', token, accepted_at IS NOT NULL, earlier_attempts->0->>'state', "
            "jsonb_array_length(earlier_attempts)), ', ' ORDER BY token) FROM mailroom_deliveries") ==
        "1 t accepted 1, 2 t unknown 1");
}

TEST_CASE("rule 2: a mail that was accepted after all is not mailed again by a deferral that waits",
          "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  const auto first = rig.claim(2).lease;
  const auto again = rig.claim(2).lease;
  REQUIRE(again);
  const auto wait = [](std::int64_t token) { return outcome(token, fate::Outcome::deferred, 60); };
  rig.claim(0, receipt_of(*again, {wait(1), wait(2)}));
  const auto late =
      receipt_of(*first, {outcome(1, fate::Outcome::accepted), outcome(2, fate::Outcome::deferred, 60)});
  const auto history = [&] {
    return value<std::string>(
        *rig.connection,
        "SELECT string_agg(concat_ws(' ', token, state, attempts, code, accepted_at IS NOT NULL, "
        "(SELECT string_agg(concat_ws(' ', e->>'state', e->>'code'), ' ') FROM jsonb_array_elements(earlier_attempts) e)), "
        "', ' ORDER BY token) FROM mailroom_deliveries");
  };
  const std::string ended = "1 accepted 2 250 t deferred 451, 2 deferred 2 451 f deferred 451";
  for (int i = 0; i < 2; ++i) {
    CHECK(rig.claim(0, late).receipt_void);
    CHECK(history() == ended);
  }
  due_now(*rig.connection);
  CHECK(rig.deliver(10, fate::Outcome::accepted) == Ids{2});
}

TEST_CASE("rule 2: an operator's deferred mail is not ended by what comes late of the mail before",
          "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  const auto first = rig.claim(2).lease;
  const auto again = rig.claim(2).lease;
  REQUIRE(again);
  rig.claim(
      0, receipt_of(*again, {outcome(1, fate::Outcome::rejected), outcome(2, fate::Outcome::deferred, 60)}));
  rig.connection->run("SELECT mailroom_replay('mailroom', '{1}', '{}')");
  CHECK(rig.deliver(10, fate::Outcome::deferred, 60) == Ids{1});
  CHECK(rig.claim(0, receipt_of(*first,
                                {outcome(1, fate::Outcome::accepted), outcome(2, fate::Outcome::accepted)}))
            .receipt_void);
  CHECK(rig.deliveries() == "deferred 3 waits, accepted 2");
}

TEST_CASE("rule 2: what comes late of a dead batch replaces what was supposed of it", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  const auto lease = rig.claim(1).lease;
  REQUIRE(lease);
  rig.session->begin({*lease}, {"relay:25"});
  rig.connection->run("UPDATE mailroom_batches SET attempts = 20");
  const claim::Lease last{lease->batch, 20, lease->queue};
  CHECK(rig.claim(1).dead == lease->batch);
  CHECK(rig.deliveries() == "unknown 0");
  rig.claim(0, receipt_of(last, {outcome(1, fate::Outcome::accepted)}));
  CHECK(rig.deliveries() == "accepted 1");
}

TEST_CASE("rule 2: nothing is recorded of tokens that a rewind took from the batch", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 3);
  const auto lease = rig.claim(3).lease;
  REQUIRE(lease);
  rig.carry_out(to(1));
  rig.claim(0, receipt_of(*lease, {outcome(1, fate::Outcome::accepted), outcome(2, fate::Outcome::accepted),
                                   outcome(3, fate::Outcome::deferred)}));
  CHECK(rig.deliveries() == "accepted 1");
  CHECK(rig.deliver(10, fate::Outcome::accepted) == Ids{2, 3});
}

TEST_CASE("rule 2: an older batch never overwrites what a newer one has recorded", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  const auto older = rig.claim(1).lease;
  REQUIRE(older);
  rig.carry_out(to(0));
  rig.connection->run(
      fmt::format("UPDATE mailroom_batches SET ids = '{{[1,2)}}' WHERE id = {}", older->batch));
  const auto other = attach_sender(rig.database);
  const auto newer = other->claim({.limit = 1, .partial = true, .take_over = false}).lease;
  REQUIRE(newer);
  other->claim({.receipt = receipt_of(*newer, {outcome(1, fate::Outcome::accepted)})});
  rig.claim(0, receipt_of(*older, {outcome(1, fate::Outcome::deferred)}));
  CHECK(rig.deliveries() == "accepted 1");
}

TEST_CASE("rule 3: a leased token that has been deleted is cancelled", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 3);
  rig.deliver(3, fate::Outcome::deferred, 0);
  const auto lease = rig.claim(3).lease;
  REQUIRE(lease);
  rig.connection->run("DELETE FROM tokens WHERE id IN (2, 3)");
  CHECK(fetch_ids(*rig.session, *lease) == Ids{1});
  rig.claim(
      0, receipt_of(*lease, {outcome(1, fate::Outcome::accepted), outcome(3, fate::Outcome::deferred, 1)}));
  CHECK(rig.deliveries() == "accepted 2, cancelled 1, cancelled 2");
  CHECK(
      value<std::string>(*rig.connection, "SELECT DISTINCT reply FROM mailroom_deliveries WHERE token > 1") ==
      "the token was deleted");
  CHECK(rig.deliver(3, fate::Outcome::accepted).empty());
}

TEST_CASE("rule 4: that a token was accepted once stays on record", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::accepted);
  const auto at = value<std::string>(*rig.connection, "SELECT accepted_at::text FROM mailroom_deliveries");
  rig.carry_out(to(0));
  rig.deliver(1, fate::Outcome::rejected);
  CHECK(rig.deliveries() == "rejected 2");
  CHECK(value<std::string>(*rig.connection, "SELECT accepted_at::text FROM mailroom_deliveries") == at);
}

TEST_CASE("rule 4: the tokens of a batch that is dead-lettered are unknown if the receiver may have them",
          "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  const auto lease = rig.claim(2).lease;
  REQUIRE(lease);
  const bool has_begun = GENERATE(false, true);
  if (has_begun) CHECK(rig.session->begin({*lease}, {"relay:25"}) == Ids{lease->batch});
  const auto second = rig.claim(2);
  REQUIRE(second.lease);
  CHECK(second.lease->attempt == 2);
  rig.connection->run("UPDATE mailroom_batches SET attempts = 20, begun = NULL");
  CHECK(rig.claim(2).dead == lease->batch);
  CHECK(rig.deliveries() == (has_begun ? "unknown 0, unknown 0" : "rejected 0, rejected 0"));
  CHECK(value<int>(*rig.connection, "SELECT min(unknowns) FROM mailroom_deliveries") == (has_begun ? 1 : 0));
}

TEST_CASE("rule 4: a lease says with which sinks it and those before it had begun", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 3);
  const auto first = rig.claim(1).lease;
  REQUIRE(first);
  CHECK(first->begun.empty());
  CHECK(rig.session->begin({*first}, {"relay:25", "a, \"b\":25"}) == Ids{first->batch});
  const auto second = rig.claim(1).lease;
  REQUIRE(second == claim::Lease{first->batch, 2, first->queue});
  // What it was told once holds for the next leases.
  CHECK(second->begun == std::vector<std::string>{"relay:25", "a, \"b\":25"});
  CHECK(second->earlier == std::vector<std::vector<std::string>>{{"a, \"b\":25", "relay:25"}});
  rig.session->announce({});
  const auto third = rig.claim(1).lease;
  REQUIRE(third);
  CHECK(third->begun.empty());
  CHECK(third->earlier.size() == 2);
  // What was taken over is not the consumer's any more.
  CHECK(rig.session->begin({*first, *third}, {"relay:25"}) == Ids{third->batch});
}

TEST_CASE("rule 4: a consumer keeps its leases in its next session, unless they were taken over",
          "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  const auto kept = rig.claim(1).lease;
  REQUIRE(kept);
  rig.session.reset();
  rig.session = attach_sender(rig.database);
  const auto other = attach_sender(rig.database);
  rig.session->keep({*kept});
  const auto next = other->claim({.limit = 1, .partial = true}).lease;
  REQUIRE(next);
  CHECK(next->batch != kept->batch);
  rig.session.reset();
  // The server ends a session a moment after its client has left.
  std::optional<claim::Lease> taken;
  REQUIRE(eventually([&] {
    taken = other->claim({.limit = 1, .partial = true, .held = next->batch}).lease;
    return taken.has_value();
  }));
  REQUIRE(taken == claim::Lease{kept->batch, 2, kept->queue});
  rig.session = attach_sender(rig.database);
  rig.session->keep({*kept});
  CHECK(rig.claim(0, receipt_of(*kept, {outcome(1, fate::Outcome::rejected)})).receipt_void);
}

TEST_CASE("rule 5: deferred tokens, gaps and the window share a batch when all have more than fits",
          "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 100, "deferred");
  for (int i = 0; i < 2; ++i) {
    rig.deliver(50, fate::Outcome::deferred, 600);
  }
  const auto late = begin_insert(rig.database, 100, "late");
  insert_accounts(*rig.connection, 1, "between");
  rig.connection->run("UPDATE mailroom_deliveries SET not_before = 'infinity'");
  CHECK(rig.deliver(10, fate::Outcome::accepted) == Ids{201});
  late->run("COMMIT");
  insert_accounts(*rig.connection, 100, "new");
  due_now(*rig.connection);
  const auto ids = rig.deliver(12, fate::Outcome::accepted);
  const auto count = [&](std::int64_t from, std::int64_t to) {
    return std::count_if(ids.begin(), ids.end(), [&](auto id) { return id >= from && id <= to; });
  };
  CHECK(count(1, 100) == 3);
  CHECK(count(101, 200) == 3);
  CHECK(count(202, 301) == 6);
}

TEST_CASE("rule 5: deferred tokens may fill a batch that nothing else needs", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 10);
  rig.deliver(10, fate::Outcome::deferred, 0);
  CHECK(rig.deliver(10, fate::Outcome::accepted).size() == 10);
}

TEST_CASE("a token that would wait until its link is about to expire is expired", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  rig.connection->run(
      "UPDATE tokens SET expires_at = floor(extract(epoch FROM clock_timestamp())) + CASE id WHEN 1 "
      "THEN 3600 ELSE 9223372036854775 END");
  const auto lease = rig.claim(2).lease;
  REQUIRE(lease);
  rig.claim(0, receipt_of(*lease, {outcome(1, fate::Outcome::deferred, 3550),
                                   outcome(2, fate::Outcome::deferred, 3550)}));
  CHECK(rig.deliveries() == "expired 1, deferred 1 waits");
}

TEST_CASE(
    "what is read for a sink with outcomes: earlier attempts, and a newer recovery token of the account",
    "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::deferred, 0);
  rig.connection->run("UPDATE mailroom_deliveries SET unknowns = 1");
  rig.connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 1");
  rig.connection->run("UPDATE accounts SET status = 'active'");
  rig.connection->run(
      "INSERT INTO tokens (account, action, expires_at) SELECT id, 'password_recovery', 4000000000 FROM accounts, "
      "generate_series(1, 3)");
  rig.connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 4");
  rig.connection->run("UPDATE mailroom_deliveries SET not_before = '-infinity'");
  const auto lease = rig.claim(10).lease;
  REQUIRE(lease);
  std::string rows;
  rig.session->fetch(*lease, [&](const claim::TokenRow& row) {
    rows += fmt::format("{} {} {} {}; ", row.id, row.attempts, row.unknowns, row.newer.value_or(0));
    CHECK(row.created_at > 1'700'000'000);
    CHECK(row.account == 1);
  });
  CHECK(rows == "1 1 1 0; 2 0 0 3; 3 0 0 0; ");
}

TEST_CASE(
    "the record of a token is found by queue and token, also with a plan that was made for an empty table") {
  TestDatabase database;
  const auto connection = database.connect();
  for (const auto* setting : {"enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin"})
    connection->run(std::string("SET ") + setting + " = off");
  std::string plan;
  for (const auto& row :
       connection->run("EXPLAIN (COSTS OFF) SELECT * FROM mailroom_batch_mails(1, 1, true)"))
    plan += std::string(row[0].c_str()) + "\n";
  INFO(plan);
  CHECK(plan.find("Index Cond: ((queue = ") != std::string::npos);
  CHECK(plan.find("Index Cond: (queue = ") == std::string::npos);
  CHECK(plan.find("Index Cond: (token = ") == std::string::npos);
  // All other conditions on an account's tokens are filters.
  CHECK(plan.find("Index Cond: (account = ") != std::string::npos);
  CHECK(plan.find("Index Cond: ((id > ") == std::string::npos);
}

}  // namespace mailroom::test::outcome_test
