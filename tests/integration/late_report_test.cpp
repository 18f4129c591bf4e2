// What becomes of tokens whose batches did not wait for their answer, when it comes.

#include "base/clock.hpp"
#include "support/catch.hpp"
#include "support/outcome_rig.hpp"

namespace mailroom::test::late_report_test {
namespace {

/// As a sink records a token that it has no answer for, while the receiver may have it.
claim::TokenOutcome unanswered(std::int64_t token) {
  return {.token = token, .state = fate::Outcome::deferred, .unknowns = 1, .wait = std::chrono::minutes(3)};
}

/// What is known now: the deferral counted as maybe accepted.
claim::Receipt known(const claim::Lease& lease, claim::TokenOutcome outcome) {
  --outcome.unknowns;
  outcome.answered_at = wall_now();
  return {.lease = lease, .counts = {}, .outcomes = std::vector{std::move(outcome)}};
}

struct LateRig : OutcomeRig {
  claim::Lease lease;

  /// Three tokens whose batch is done without their answers.
  LateRig() {
    insert_accounts(*connection, 3);
    lease = *claim(3).lease;
    claim(0, receipt_of(lease, {unanswered(1), unanswered(2), unanswered(3)}));
  }

  /// `accepted 1 0, deferred 1 0 waits`: attempts and unknowns of each token.
  std::string states() {
    return value<std::string>(*connection, R"(
SELECT string_agg(concat_ws(' ', state, attempts, unknowns, CASE WHEN not_before IS NOT NULL THEN 'waits' END), ', '
                  ORDER BY token) FROM mailroom_deliveries)");
  }
  std::string reply_of(int token) {
    return connection
        ->run("SELECT coalesce(reply, '') FROM mailroom_deliveries WHERE token = $1", token)[0][0]
        .c_str();
  }
};

}  // namespace

TEST_CASE("a token whose answer comes late has the outcome of the answer") {
  LateRig rig;
  CHECK(rig.states() == "deferred 0 1 waits, deferred 0 1 waits, deferred 0 1 waits");
  rig.session->report(known(rig.lease, outcome(1, fate::Outcome::accepted)));
  rig.session->report(known(rig.lease, outcome(2, fate::Outcome::rejected)));
  rig.session->report(known(rig.lease, outcome(3, fate::Outcome::deferred, 15)));
  CHECK(rig.states() == "accepted 1 0, rejected 1 0, deferred 1 0 waits");
  CHECK(rig.reply_of(2) == "rejected");
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE not_before BETWEEN clock_timestamp() AND "
                   "clock_timestamp() + interval '15 seconds'") == 1);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE accepted_at IS NOT NULL") == 1);
}

TEST_CASE("a late answer that is reported twice counts once") {
  LateRig rig;
  for (int i = 0; i < 2; ++i) {
    rig.session->report(known(rig.lease, outcome(1, fate::Outcome::accepted)));
    rig.session->report(known(rig.lease, outcome(2, fate::Outcome::rejected)));
    rig.session->report(known(rig.lease, outcome(3, fate::Outcome::deferred, 15)));
  }
  CHECK(rig.states() == "accepted 1 0, rejected 1 0, deferred 1 0 waits");
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE earlier_attempts IS NOT NULL") == 0);
}

TEST_CASE("without its answer a token may have been accepted") {
  LateRig rig;
  due_now(*rig.connection);
  const auto again = rig.claim(3).lease;
  std::vector<int> unknowns;
  rig.session->fetch(*again, [&](const claim::TokenRow& row) { unknowns.push_back(row.unknowns); });
  CHECK(unknowns == std::vector{1, 1, 1});
}

TEST_CASE("an answer that comes when another batch has the token ends its deferral only if it was accepted") {
  LateRig rig;
  due_now(*rig.connection);
  const auto again = *rig.claim(3).lease;
  SECTION("before the other batch has an outcome") {
    rig.session->report(known(rig.lease, outcome(1, fate::Outcome::accepted)));
    rig.session->report(known(rig.lease, outcome(2, fate::Outcome::rejected)));
    rig.claim(0, receipt_of(again, {outcome(1, fate::Outcome::accepted), outcome(2, fate::Outcome::accepted),
                                    outcome(3, fate::Outcome::accepted)}));
    CHECK(rig.states() == "accepted 2 1, accepted 2 1, accepted 1 1");
  }
  SECTION("after the other batch has deferred it") {
    rig.claim(0, receipt_of(again,
                            {outcome(1, fate::Outcome::deferred, 60), outcome(2, fate::Outcome::deferred, 60),
                             outcome(3, fate::Outcome::deferred, 60)}));
    rig.session->report(known(rig.lease, outcome(1, fate::Outcome::accepted)));
    rig.session->report(known(rig.lease, outcome(2, fate::Outcome::rejected)));
    CHECK(rig.states() == "accepted 2 1, deferred 2 1 waits, deferred 1 1 waits");
  }
  CHECK(
      value<int>(
          *rig.connection,
          "SELECT count(*) FROM mailroom_deliveries WHERE jsonb_path_exists(earlier_attempts, '$[*].attempt')") >=
      1);
}

}  // namespace mailroom::test::late_report_test
