// What mailroom_deliveries says of a token is kept, whatever becomes of it later.

#include "replay/rewind.hpp"
#include "support/catch.hpp"
#include "support/outcome_rig.hpp"
#include "support/several_queues.hpp"

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
  rig.deliver(1, DeliveryState::accepted);
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
  rig.deliver(1, DeliveryState::deferred, 60);
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
  rig.deliver(1, DeliveryState::deferred, 60);
  drop_queue(*rig.connection, "mailroom");
  CHECK(record() ==
        "cancelled the queue was dropped | " + accepted.substr(0, accepted.find(" |")) +
            ", deferred, deferred 451 deferred, cancelled the cursor was moved: it emits the token, deferred "
            "451 deferred");
}

TEST_CASE("an acceptance without words stays on record", "[outcome]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 1);
  rig.deliver(1, DeliveryState::deferred, 60);
  due_now(*rig.connection);
  auto lease = rig.claim(1).lease;
  REQUIRE(lease);
  rig.claim(0,
            receipt_of(*lease, {TokenOutcome{.token = 1, .state = DeliveryState::accepted, .attempts = 1}}));
  CHECK(value<std::string>(*rig.connection,
                           "SELECT concat_ws(' ', state, code, reply, earlier_attempts->0->>'reply') FROM "
                           "mailroom_deliveries") == "accepted deferred");
  rig.carry_out(to(0));
  rig.deliver(1, DeliveryState::rejected);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT earlier_attempts->1->>'state' FROM mailroom_deliveries") == "accepted");
}

}  // namespace mailroom::test::delivery_record_test
