// The people whose tokens have an outcome: the same as reconcile counts, each once.

#include <set>

#include "support/catch.hpp"
#include "support/outcome_rig.hpp"
#include "support/reconcile_rig.hpp"

namespace mailroom::test::people_test {
namespace {

std::vector<reconcile::TokenOfPerson> listed(db::Connection& connection,
                                             const selection::Selection& selection) {
  std::vector<reconcile::TokenOfPerson> all;
  reconcile::reconcile(connection,
                       {.queues = {"mailroom"}, .listed = &selection, .on_people = [&](const auto& people) {
                          all.insert(all.end(), people.begin(), people.end());
                        }});
  return all;
}

std::string tokens_of(db::Connection& connection, const selection::Selection& selection) {
  std::vector<std::int64_t> ids;
  for (const auto& person : listed(connection, selection))
    ids.push_back(person.token);
  std::sort(ids.begin(), ids.end());
  return selection::id_ranges_text(selection::to_id_ranges(ids));
}

/// Each token is listed once, under the outcome that counts it.
void check_all_listed(db::Connection& connection) {
  const auto result = reconciled(connection);
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < fate::outcome_count; ++i) {
    const auto outcome = static_cast<fate::Outcome>(i);
    CAPTURE(fate::outcome_name(outcome));
    std::int64_t own = 0;
    for (const auto& person : listed(connection, {.outcomes = {outcome}})) {
      if (person.outcome != outcome) continue;
      ++own;
      CHECK(seen.insert(person.token).second);
    }
    CHECK(own == result.tokens_with(outcome));
  }
  CHECK(static_cast<std::int64_t>(seen.size()) == result.tokens);
  CHECK(static_cast<std::int64_t>(listed(connection, {}).size()) == result.tokens);
}

}  // namespace

TEST_CASE("each token is listed once, under the outcome that counts it", "[people]") {
  ReconcileRig rig;
  rig.emit(6);
  rig.carry_out(to(4));
  rig.drain(2);
  check_all_listed(*rig.connection);
  insert_accounts(*rig.connection, 8, "skipped");
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id IN (7, 8, 9)");
  rig.hand("UPDATE tokens SET consumed_at = created_at WHERE id = 10");
  rig.hand("UPDATE accounts SET status = 'suspended' WHERE id = 12");
  rig.drain(3);
  rig.hand("UPDATE tokens SET expires_at = created_at + 900 WHERE id = 8");
  check_all_listed(*rig.connection);
  insert_accounts(*rig.connection, 6, "more");
  rig.session->claim({.limit = 2, .partial = true});
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id >= 19");
  check_all_listed(*rig.connection);
  rig.hand("DELETE FROM mailroom_batches WHERE id = 1");
  CHECK_FALSE(rig.unexplained().empty());
  check_all_listed(*rig.connection);
}

TEST_CASE("each delivery is listed once, under the outcome that counts it", "[people]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 12);
  rig.deliver(2, fate::Outcome::accepted);
  rig.deliver(2, fate::Outcome::rejected);
  rig.deliver(2, fate::Outcome::deferred, 60);
  rig.deliver(2, fate::Outcome::unknown);
  rig.connection->run("UPDATE tokens SET expires_at = created_at WHERE id IN (9, 11)");
  rig.deliver(1, fate::Outcome::accepted);
  check_all_listed(*rig.connection);
  rig.connection->run("DELETE FROM mailroom_deliveries WHERE token = 1");
  check_all_listed(*rig.connection);
}

TEST_CASE("a person is listed with address, time, reason and code", "[people]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 3);
  rig.deliver(1, fate::Outcome::rejected);
  rig.deliver(1, fate::Outcome::deferred, 60);
  const auto rejected = listed(*rig.connection, {.outcomes = {fate::Outcome::rejected}});
  REQUIRE(rejected.size() == 1);
  const auto& person = rejected.front();
  CHECK(person.queue == "mailroom");
  CHECK(person.account == 1);
  CHECK(person.login == "user1");
  CHECK(person.address == "user1@test.example");
  CHECK(person.action == "activation");
  CHECK(person.at);
  CHECK(person.code == 451);
  CHECK(person.reply == "rejected");
  CHECK(person.reason.empty());
  const auto deferred = listed(*rig.connection, {.outcomes = {fate::Outcome::deferred}});
  REQUIRE(deferred.size() == 1);
  CHECK(deferred.front().reason.starts_with("the next attempt at "));
  const auto waiting = listed(*rig.connection, {.outcomes = {fate::Outcome::waiting}});
  REQUIRE(waiting.size() == 1);
  CHECK_FALSE(waiting.front().at);
}

TEST_CASE("the address that was mailed to is listed, not the one that the account has since", "[people]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 2);
  rig.deliver(2, fate::Outcome::rejected);
  rig.connection->run("UPDATE mailroom_deliveries SET address = NULL WHERE token = 2");
  rig.connection->run("UPDATE accounts SET email = 'new' || id || '@test.example'");
  const auto rejected = listed(*rig.connection, {.outcomes = {fate::Outcome::rejected}});
  REQUIRE(rejected.size() == 2);
  CHECK(rejected[0].address == "user1@test.example");
  // As of a line, which is mailed to nobody here.
  CHECK(rejected[1].address == "new2@test.example");
}

TEST_CASE("what expired before its queue came to it is not waiting, and is listed as expired", "[people]") {
  ReconcileRig rig;
  insert_accounts(*rig.connection, 2);
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id = 1");
  rig.drain();
  insert_accounts(*rig.connection, 2, "more");
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id = 3");
  CHECK(rig.classes() == "1 emitted, 2 skipped, 1 waiting");
  CHECK(explanations_of(rig.result(), fate::Outcome::skipped) ==
        "expired; expired before the queue came to it");
  CHECK(tokens_of(*rig.connection, {.outcomes = {fate::Outcome::expired}}) == "1, 3");
  CHECK(tokens_of(*rig.connection, {.outcomes = {fate::Outcome::waiting}}) == "4");
  rig.hand("UPDATE accounts SET status = 'suspended' WHERE id = 4");
  CHECK(rig.classes() == "1 emitted, 2 skipped, 1 waiting");
}

TEST_CASE("the outcomes of a selection become its tokens", "[people]") {
  OutcomeRig rig;
  insert_accounts(*rig.connection, 6);
  rig.deliver(2, fate::Outcome::rejected);
  rig.deliver(2, fate::Outcome::accepted);
  const auto resolved = [&](selection::Selection selection) {
    selection = reconcile::resolve_outcomes(*rig.connection, "mailroom", std::move(selection));
    CHECK(selection.outcomes.empty());
    return selection.tokens ? selection::id_ranges_text(*selection.tokens) : "all";
  };
  CHECK(resolved({.outcomes = {fate::Outcome::rejected, fate::Outcome::waiting}}) == "1-2, 5-6");
  CHECK(resolved({.accounts = {2, 3}, .outcomes = {fate::Outcome::rejected}}) == "2");
  CHECK(resolved({.outcomes = {fate::Outcome::dead}}).empty());
  CHECK(resolved({.accounts = {2, 3}}) == "all");
}

}  // namespace mailroom::test::people_test
