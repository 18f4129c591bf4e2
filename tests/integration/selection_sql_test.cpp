// The condition of a selection in SQL, against the rows that it means.

#include "selection/selection.hpp"
#include "support/catch.hpp"
#include "support/outcome_rig.hpp"

namespace mailroom::test::selection_sql_test {
namespace {

struct SelectionRig : OutcomeRig {
  /// The tokens that match, as ranges.
  std::string matches(const selection::Selection& selection) {
    const auto rows = connection->run("SELECT t.id FROM tokens t WHERE $2::text IS NOT NULL" +
                                          selection.condition("$1", "$2") + " ORDER BY t.id",
                                      selection.parameter(), "mailroom");
    std::vector<std::int64_t> ids;
    for (const auto& row : rows)
      ids.push_back(row[0].as<std::int64_t>());
    return selection::id_ranges_text(selection::to_id_ranges(ids));
  }
};

}  // namespace

TEST_CASE("a selection matches by account, action, time and id", "[selection]") {
  SelectionRig rig;
  insert_accounts(*rig.connection, 4);
  rig.connection->run("UPDATE accounts SET status = 'active' WHERE id = 2");
  rig.connection->run("INSERT INTO tokens (account, action) VALUES (2, 'password_recovery')");
  CHECK(rig.matches({}) == "1-5");
  CHECK(rig.matches({.actions = {"password_recovery"}}) == "5");
  CHECK(rig.matches({.actions = {"password_recovery", "activation"}}) == "1-5");
  CHECK(rig.matches({.accounts = {2, 4}}) == "2, 4-5");
  CHECK(rig.matches({.actions = {"activation"}, .accounts = {2, 4}}) == "2, 4");
  CHECK(rig.matches({.tokens = std::vector<selection::IdRange>{{2, 4}}}) == "2-3");
  CHECK(rig.matches({.tokens = std::vector<selection::IdRange>{}}).empty());
  rig.connection->run("UPDATE tokens SET created_at = 1000 + id");
  const auto at = [](int second) { return Moment(std::chrono::seconds(second)); };
  CHECK(rig.matches({.since = at(1003)}) == "3-5");
  CHECK(rig.matches({.since = at(1003), .until = at(1005)}) == "3-4");
}

TEST_CASE("a selection matches by batch, consumer and code", "[selection]") {
  SelectionRig rig;
  insert_accounts(*rig.connection, 6);
  rig.deliver(2, fate::Outcome::accepted);
  rig.deliver(2, fate::Outcome::rejected);
  rig.connection->run("UPDATE mailroom_batches SET claimed_by = 'mailroom send@mail1:77' WHERE id = 1");
  rig.connection->run("UPDATE mailroom_batches SET claimed_by = 'mailroom send amy@mail10:8' WHERE id = 2");
  CHECK(rig.matches({.batches = {1}}) == "1-2");
  // Its tokens were skipped, since none was accepted.
  CHECK(rig.matches({.batches = {2}}) == "3-4");
  CHECK(rig.matches({.batches = {1, 2}}) == "1-4");
  CHECK(rig.matches({.consumers = {"send"}}) == "1-4");
  CHECK(rig.matches({.consumers = {"send@mail1"}}) == "1-2");
  CHECK(rig.matches({.consumers = {"send@mail10:8"}}) == "3-4");
  CHECK(rig.matches({.consumers = {"send amy"}}) == "3-4");
  CHECK(rig.matches({.consumers = {"send amy@mail10"}}) == "3-4");
  CHECK(rig.matches({.batches = {1}, .consumers = {"send@mail10"}}).empty());
  CHECK(rig.matches({.codes = {{250, 250}}}) == "1-2");
  CHECK(rig.matches({.codes = {{400, 499}, {550, 550}}}) == "3-4");
}

TEST_CASE("a selection matches by the key of the newest mail that was accepted", "[selection]") {
  const std::string old_key(16, 'a');
  const std::string new_key(16, 'b');
  SelectionRig rig;
  insert_accounts(*rig.connection, 4);
  const auto signed_with = [&](const std::string& key) {
    rig.connection->run("UPDATE mailroom_batches SET key = $1 WHERE key IS NULL", key);
  };
  rig.deliver(3, fate::Outcome::accepted);
  rig.deliver(1, fate::Outcome::rejected);
  signed_with(old_key);
  CHECK(rig.matches({.keys = {old_key}}) == "1-4");
  CHECK(rig.matches({.keys = {new_key}}).empty());
  rig.connection->run("SELECT mailroom_replay('mailroom', ARRAY[1, 2, 4], '{}')");
  CHECK(rig.deliver(3, fate::Outcome::accepted) == Ids{1, 2, 4});
  signed_with(new_key);
  CHECK(rig.matches({.keys = {old_key}}) == "3");
  CHECK(rig.matches({.keys = {new_key}}) == "1-2, 4");
  CHECK(rig.matches({.batches = {1}, .keys = {new_key}}).empty());
  INFO("a mail without a link is signed by no key");
  rig.connection->run("UPDATE mailroom_actions SET path = NULL WHERE action = 'activation'");
  CHECK(rig.matches({.keys = {new_key}}).empty());
  rig.connection->run("UPDATE mailroom_actions SET path = '/activate' WHERE action = 'activation'");
  INFO("an attempt that was not accepted leaves the mail before it the newest");
  rig.connection->run("SELECT mailroom_replay('mailroom', ARRAY[3], '{}')");
  CHECK(rig.deliver(1, fate::Outcome::rejected) == Ids{3});
  signed_with(new_key);
  CHECK(rig.matches({.keys = {old_key}}) == "3");
}

TEST_CASE("a selection matches by the time of any mail, and of a line where nothing was mailed",
          "[selection]") {
  SelectionRig rig;
  insert_accounts(*rig.connection, 7);
  const auto at = [](int second) { return Moment(std::chrono::seconds(second)); };
  // What was answered last is answered at `second`, and what it replaced stays as it was.
  const auto answered = [&](int second) {
    rig.connection->run(
        "UPDATE mailroom_deliveries SET last_at = to_timestamp($1), answered_at = to_timestamp($1) "
        "WHERE last_at > now() - interval '1 hour'",
        second);
  };
  rig.connection->run("UPDATE tokens SET created_at = 1000");
  rig.deliver(2, fate::Outcome::accepted);
  answered(2000);
  rig.deliver(1, fate::Outcome::unknown);
  answered(2001);
  rig.deliver(1, fate::Outcome::rejected);
  answered(2002);
  CHECK(rig.matches({.mailed_since = at(2000)}) == "1-3");
  CHECK(rig.matches({.mailed_since = at(2001)}) == "3");
  CHECK(rig.matches({.mailed_until = at(2001)}) == "1-2");
  CHECK(rig.matches({.mailed_since = at(2003)}).empty());
  INFO("the first mail of a token that was mailed again still counts");
  rig.connection->run("SELECT mailroom_replay('mailroom', ARRAY[1], '{}')");
  REQUIRE(rig.deliver(1, fate::Outcome::accepted) == Ids{1});
  answered(3000);
  CHECK(rig.matches({.mailed_since = at(2000), .mailed_until = at(2001)}) == "1-2");
  CHECK(rig.matches({.mailed_since = at(3000)}) == "1");
  INFO("a line counts when its batch was acknowledged");
  REQUIRE(rig.deliver(2, fate::Outcome::accepted) == Ids{5, 6});
  rig.connection->run("DELETE FROM mailroom_deliveries WHERE token IN (5, 6)");
  rig.connection->run(
      "UPDATE mailroom_batches SET emitted_at = to_timestamp(2500) WHERE mailroom_batch_ids(ids, ids_mask) @> 5::bigint");
  CHECK(rig.matches({.mailed_since = at(2400), .mailed_until = at(2600)}) == "5-6");
  CHECK(rig.matches({.accounts = {6, 7}, .mailed_since = at(2400)}) == "6");
}

TEST_CASE("an answer to an earlier token with the id matches none", "[selection]") {
  SelectionRig rig;
  insert_accounts(*rig.connection, 2);
  rig.deliver(2, fate::Outcome::rejected);
  rig.connection->run("UPDATE mailroom_deliveries SET last_at = now() - interval '1 hour' WHERE token = 1");
  CHECK(rig.matches({.codes = {{451, 451}}}) == "2");
}

}  // namespace mailroom::test::selection_sql_test
