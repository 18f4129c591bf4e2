// What mailroom_deliveries says of a token is kept, whatever becomes of it later.

#include "replay/rewind.hpp"
#include "support/catch.hpp"
#include "support/outcome_rig.hpp"
#include "support/several_queues.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::delivery_record_test {

TEST_CASE("an acceptance stays on record, whatever follows it", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  const auto record = [&] {
    return value<std::string>(
        *rig.connection,
        "SELECT concat_ws(' ', state, code, reply, '|', (SELECT string_agg(concat_ws(' ', "
        "a->>'state', a->>'code', a->>'reply'), ', ') FROM jsonb_array_elements("
        "earlier_attempts) a)) FROM mailroom_deliveries");
  };
  const auto times = [&] {
    return value<std::string>(
        *rig.connection,
        "SELECT count(*) || ' ' || bool_and((a->>'at')::timestamptz = accepted_at) FROM "
        "mailroom_deliveries, jsonb_array_elements(earlier_attempts) a "
        "WHERE a->>'state' = 'accepted'");
  };
  const auto give_back = [&] {
    const auto lease = rig.claim(1).lease;
    REQUIRE(lease);
    rig.claim(0, receipt_of(*lease, {given_back(1)}));
  };
  rig.deliver(1, fate::Outcome::accepted);
  const auto accepted = record();
  rig.carry_out(to(0));
  // The relay is down, again and again.
  give_back();
  CHECK(record() == "deferred | " + accepted.substr(0, accepted.find(" |")));
  due_now(*rig.connection);
  give_back();
  CHECK(record() == "deferred | " + accepted.substr(0, accepted.find(" |")));
  CHECK(times() == "1 true");
  // What the queue does to a token that waits is not what the relay said of it.
  due_now(*rig.connection);
  rig.deliver(1, fate::Outcome::deferred, 60);
  CHECK(record() == "deferred 451 deferred | " + accepted.substr(0, accepted.find(" |")) + ", deferred");
  const auto deferred_at =
      value<std::string>(*rig.connection, "SELECT last_at::text FROM mailroom_deliveries");
  rig.carry_out(to(0));
  CHECK(record() == "cancelled the cursor was moved: it emits the token | " +
                        accepted.substr(0, accepted.find(" |")) + ", deferred, deferred 451 deferred");
  CHECK(
      value<std::string>(*rig.connection,
                         "SELECT (earlier_attempts->2->>'at')::timestamptz::text FROM mailroom_deliveries") ==
      deferred_at);
  rig.deliver(1, fate::Outcome::deferred, 60);
  drop_queue(*rig.connection, "mailroom");
  CHECK(record() ==
        "cancelled the queue was dropped | " + accepted.substr(0, accepted.find(" |")) +
            ", deferred, deferred 451 deferred, cancelled the cursor was moved: it emits the token, deferred "
            "451 deferred");
}

TEST_CASE("an acceptance without words stays on record", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::deferred, 60);
  due_now(*rig.connection);
  auto lease = rig.claim(1).lease;
  REQUIRE(lease);
  rig.claim(
      0,
      receipt_of(*lease, {claim::TokenOutcome{.token = 1, .state = fate::Outcome::accepted, .attempts = 1}}));
  CHECK(value<std::string>(*rig.connection,
                           "SELECT concat_ws(' ', state, code, reply, earlier_attempts->0->>'reply') FROM "
                           "mailroom_deliveries") == "accepted deferred");
  rig.carry_out(to(0));
  rig.deliver(1, fate::Outcome::rejected);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT earlier_attempts->1->>'state' FROM mailroom_deliveries") == "accepted");
}

TEST_CASE("each attempt keeps its address, its batch and its times", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::accepted);
  const auto first = value<std::string>(
      *rig.connection,
      "SELECT concat_ws(' ', batch, address, sink, code, reply, last_at) FROM mailroom_deliveries");
  rig.carry_out(to(0));
  const auto lease = rig.claim(1).lease;
  REQUIRE(lease);
  auto second = outcome(1, fate::Outcome::accepted);
  second.address = "corrected@test.example";
  rig.claim(0, receipt_of(*lease, {second}));
  CHECK(value<std::string>(*rig.connection, "SELECT address FROM mailroom_deliveries") ==
        "corrected@test.example");
  CHECK(value<std::string>(
            *rig.connection,
            "SELECT concat_ws(' ', a->>'batch', a->>'address', a->>'sink', a->>'code', a->>'reply', "
            "(a->>'at')::timestamptz) FROM mailroom_deliveries, jsonb_array_elements(earlier_attempts) a") ==
        first);
}

TEST_CASE("no statement loses an attempt, whatever it sets", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::accepted);
  rig.connection->run(
      "UPDATE mailroom_deliveries SET state = 'rejected', code = 550, reply = 'no', earlier_attempts = NULL");
  rig.connection->run("UPDATE mailroom_deliveries SET batch = batch + 1, state = 'unknown', reply = NULL");
  CHECK(value<std::string>(*rig.connection,
                           "SELECT string_agg(concat_ws(' ', a->>'state', a->>'code'), ', ') FROM "
                           "mailroom_deliveries, jsonb_array_elements(earlier_attempts) a") ==
        "accepted 250, rejected 550");
}

TEST_CASE("a replay and a take-over keep what was accepted before", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, fate::Outcome::accepted);
  rig.connection->run("SELECT mailroom_replay('mailroom', '{1}', '{}')");
  REQUIRE(rig.claim(1).lease);
  // Its session ends, and another sender takes the batch over.
  rig.session = attach_sender(rig.database);
  std::optional<claim::Lease> lease;
  REQUIRE(eventually([&] {
    lease = rig.claim(1).lease;
    return lease.has_value();
  }));
  CHECK(lease->attempt == 2);
  auto lost = outcome(1, fate::Outcome::unknown);
  lost.unknowns = 1;
  rig.claim(0, receipt_of(*lease, {lost}));
  CHECK(value<std::string>(*rig.connection,
                           "SELECT concat_ws(' ', state, unknowns, accepted_at IS NOT NULL, "
                           "earlier_attempts->0->>'state', earlier_attempts->0->>'code') FROM "
                           "mailroom_deliveries") == "unknown 1 t accepted 250");
}

}  // namespace mailroom::test::delivery_record_test
