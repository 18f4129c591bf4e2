// An application is told once that a mail was called off: at once where no consumer has its token, else by
// what the consumer records.

#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/outcome_rig.hpp"

namespace mailroom::test::called_off_outcomes_test {
namespace {

/// A way to call message 1 off, and the word for it.
struct CallingOff {
  const char* sql;
  std::string word;
};

const std::array ways{
    CallingOff{"SELECT mailroom_cancel(1)", "cancelled"},
    CallingOff{
        R"(SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 'another', idempotency_key => 'k',
  options => '{"replace": true}'))",
        "replaced"},
    CallingOff{"SELECT mailroom_forget(ARRAY['a@x.example'], NULL, '{}')", "cancelled"}};

struct CalledOffRig : OutcomeRig {
  CalledOffRig() {
    connection->run("SELECT mailroom_want_outcomes(true)");
    connection->run(
        "SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't', idempotency_key => 'k')");
  }

  /// What the application was told of the first token as final.
  std::string told() {
    return value<std::string>(
        *connection,
        "SELECT coalesce(string_agg(state, ', ' ORDER BY id), '') FROM mailroom_outcomes "
        "WHERE token = 1 AND state <> 'deferred'");
  }
  claim::Lease lease() {
    due_now(*connection);
    auto found = claim(10).lease;
    REQUIRE(found);
    return *found;
  }
  void record(const claim::Lease& lease, fate::Outcome state) {
    // The token of a message that replaces another is not called off.
    std::vector<claim::TokenOutcome> outcomes{outcome(1, state, 1)};
    for (const auto id : fetch_ids(*session, lease)) {
      if (id != 1) outcomes.push_back(outcome(id, fate::Outcome::accepted));
    }
    REQUIRE_FALSE(claim(0, receipt_of(lease, outcomes)).receipt_void);
    CHECK(value<std::string>(*connection, "SELECT state FROM mailroom_deliveries WHERE token = 1") ==
          fate::outcome_name(state));
  }
};

}  // namespace

TEST_CASE("what is called off while no consumer has it is told of at once, and not again") {
  for (const auto& way : ways) {
    for (const bool was_deferred : {false, true}) {
      CAPTURE(way.sql, was_deferred);
      CalledOffRig rig;
      if (was_deferred) rig.record(rig.lease(), fate::Outcome::deferred);
      rig.connection->run(way.sql);
      CHECK(rig.told() == way.word);
      if (was_deferred) {
        rig.record(rig.lease(), fate::Outcome::cancelled);
      } else {
        rig.deliver(10, fate::Outcome::accepted);
      }
      CHECK(rig.told() == way.word);
    }
  }
}

TEST_CASE("what is called off while a consumer has it is told of by what the consumer records") {
  for (const auto& way : ways) {
    for (const bool was_deferred : {false, true}) {
      CAPTURE(way.sql, was_deferred);
      CalledOffRig rig;
      if (was_deferred) rig.record(rig.lease(), fate::Outcome::deferred);
      const auto lease = rig.lease();
      rig.connection->run(way.sql);
      CHECK(rig.told().empty());
      rig.record(lease, fate::Outcome::cancelled);
      CHECK(rig.told() == way.word);
    }
  }
}

TEST_CASE("what a consumer had when it was called off is told of when another consumer ends it") {
  for (const auto& way : ways) {
    CAPTURE(way.sql);
    {
      INFO("which takes the batch over");
      CalledOffRig rig;
      rig.lease();
      rig.connection->run(way.sql);
      const auto again = rig.lease();
      REQUIRE(again.attempt == 2);
      rig.record(again, fate::Outcome::cancelled);
      CHECK(rig.told() == way.word);
    }
    {
      INFO("after the first has deferred it");
      CalledOffRig rig;
      const auto lease = rig.lease();
      rig.connection->run(way.sql);
      rig.record(lease, fate::Outcome::deferred);
      CHECK(rig.told().empty());
      rig.record(rig.lease(), fate::Outcome::cancelled);
      CHECK(rig.told() == way.word);
    }
  }
}

TEST_CASE("a mail that leaves although it is called off is told of as accepted alone") {
  for (const auto& way : ways) {
    CAPTURE(way.sql);
    CalledOffRig rig;
    const auto lease = rig.lease();
    rig.connection->run(way.sql);
    rig.record(lease, fate::Outcome::accepted);
    CHECK(rig.told() == "accepted");
  }
}

}  // namespace mailroom::test::called_off_outcomes_test
