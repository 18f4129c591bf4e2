// An id that two tokens had, one after the other: what is told of the second one is not what befell the
// first.

#include <fmt/format.h>

#include "accounts/suspension.hpp"
#include "accounts/token_lookup.hpp"
#include "queue/sequence_fix.hpp"
#include "support/history_play.hpp"
#include "support/rewind_rig.hpp"
#include "support/test_feed.hpp"

using namespace mailroom;
using namespace mailroom::test;

namespace {

/// Ids 1 to 4 were emitted in batch 1; then the tokens were truncated, and 1 to 3 are others now, made so
/// many seconds later.
struct ReusedIds {
  explicit ReusedIds(int seconds = 60) {
    insert_accounts(*rig.connection, 4, "before");
    hand_on(*rig.session);
    // One transaction, so that the second does not end in between; savepoints, so that rows tell which was
    // written first.
    for (const auto& sql :
         {std::string("BEGIN"), std::string("SAVEPOINT emitted"),
          fmt::format(
              "UPDATE mailroom_batches SET claimed_at = date_trunc('second', now()) - interval '{0} s', "
              "emitted_at = date_trunc('second', now()) - interval '{0} s'",
              seconds),
          std::string("RELEASE emitted"), std::string("SAVEPOINT made"),
          std::string("TRUNCATE accounts, tokens RESTART IDENTITY")})
      rig.connection->run(sql);
    insert_accounts(*rig.connection, 3, "after");
    rig.connection->run("COMMIT");
  }

  TokenStory story_of(std::int64_t token) {
    const auto history = read_token_history(*rig.connection, token, {.queue = "mailroom"});
    REQUIRE(history.tokens.size() == 1);
    return history.tokens.front();
  }
  std::string fate_of(std::int64_t token) { return outcome_name(story_of(token).fate.outcome); }
  Words timeline_of(std::int64_t token) {
    return words(read_token_history(*rig.connection, token, {.queue = "mailroom"}).timeline);
  }

  std::vector<TokenEmission> emissions_of(std::int64_t token) {
    const auto bytes = value<std::string>(
        *rig.connection, fmt::format("SELECT encode(secret, 'hex') FROM tokens WHERE id = {}", token));
    Secret secret{};
    for (std::size_t i = 0; i < secret.size(); ++i)
      secret[i] = static_cast<std::uint8_t>(std::stoi(bytes.substr(2 * i, 2), nullptr, 16));
    const auto record = find_token(*rig.connection, secret, Action::activation);
    REQUIRE(record);
    return record->emissions;
  }

  void fix() { carry_out_sequence_fix(*rig.connection, 0, rewind_author, "token_insert"); }

  RewindRig rig;
};

Told of_account(const TestDatabase& database, std::int64_t account) {
  EventFilter filter;
  filter.accounts = {account};
  Told told;
  for (const auto& event : TestFeed(database, TestFeed::everything(), filter).take())
    told.push_back(short_text(event));
  return told;
}

}  // namespace

TEST_CASE("the outcome of a token is not that of another one that had its id") {
  ReusedIds ids;
  CHECK(ids.fate_of(2) == "missed");
  CHECK(ids.story_of(2).token.id_was_anothers);
  CHECK(fate_text(ids.story_of(2), 0).find("--fix-sequence emits it") != std::string::npos);
  CHECK(ids.timeline_of(2) == Words{"issued"});
  CHECK(ids.emissions_of(2).empty());
  CHECK(of_account(ids.rig.database, 2) == Told{"created 2"});

  ids.fix();
  CHECK(ids.fate_of(2) == "waiting again");
  CHECK(ids.rig.drain() == Ids{1, 2, 3});
  const auto after = ids.story_of(2);
  CHECK(after.fate.outcome == Outcome::handed_on);
  CHECK(after.fate.times == 1);
  CHECK(after.fate.maybe == 0);
  CHECK(after.token.id_was_anothers);
  CHECK(ids.timeline_of(2) == Words{"issued", "replayed", "handed on"});
  REQUIRE(ids.emissions_of(2).size() == 1);
  CHECK(ids.emissions_of(2)[0].is_certain);
  CHECK(ids.emissions_of(2)[0].batch == after.fate.batch->id);
  CHECK(of_account(ids.rig.database, 2).size() == 2);
}

TEST_CASE("what befell an id within the second in which a token was made is told with a doubt") {
  ReusedIds ids(0);
  CHECK(ids.fate_of(2) == "maybe handed on");
  CHECK(fate_text(ids.story_of(2), 0).find("unless that was another token with its id") != std::string::npos);
  REQUIRE(ids.emissions_of(2).size() == 1);
  CHECK_FALSE(ids.emissions_of(2)[0].is_certain);
  ids.fix();
  CHECK(ids.rig.drain() == Ids{1, 2, 3});
  const auto after = ids.story_of(2);
  CHECK(after.fate.times == 1);
  CHECK(after.fate.maybe == 1);
}

TEST_CASE(
    "what is told of an id whose token is not there is told with a doubt, once it may have been two "
    "tokens'") {
  ReusedIds ids;
  ids.rig.connection->run("DELETE FROM accounts WHERE id = 2");
  CHECK(ids.fate_of(2) == "maybe handed on");
  // Not given out again yet.
  CHECK(ids.fate_of(4) == "handed on");
  ids.fix();
  ids.rig.drain();
  CHECK(ids.fate_of(2) == "maybe handed on");
  CHECK(ids.fate_of(4) == "handed on");
}

TEST_CASE("a replay counts as emitted before what was, and not what had the same id") {
  ReusedIds ids;
  auto request = to(RewindTarget::Kind::start);
  CHECK(ids.rig.plan(request).deliverable.count == 3);
  CHECK(ids.rig.plan(request).deliverable.emitted_before == 0);
  ids.fix();
  CHECK(ids.rig.plan(request).deliverable.emitted_before == 0);
  CHECK(ids.rig.drain(2) == Ids{1, 2, 3});
  CHECK(ids.rig.plan(request).deliverable.emitted_before == 3);
}

TEST_CASE("a suspension that is lifted emits a token whose id was emitted for another one") {
  ReusedIds ids;
  const auto accounts = find_accounts(*ids.rig.connection, {"2"});
  const auto changes = ids.rig.connection->transact([&](pqxx::work& transaction) {
    set_author(transaction, rewind_author);
    return restore_accounts(transaction, "mailroom", accounts);
  });
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].tokens == Ids{2});
}

TEST_CASE(
    "of a token that was restored the record is what it was, and it is not missed unless of the last "
    "second") {
  RewindRig rig;
  insert_accounts(*rig.connection, 3, "early");
  hand_on(*rig.session);
  insert_accounts(*rig.connection, 2, "lost");
  hand_on(*rig.session);
  // All that was before the restore: a while ago, or within the second of the last claim, which is the only
  // doubtful one.
  const bool long_ago = GENERATE(true, false);
  rig.connection->run("BEGIN");
  rig.connection->run("SET session_replication_role = replica");
  rig.connection->run(
      long_ago ? "UPDATE mailroom_batches SET claimed_at = now() - id * interval '1 min', emitted_at = "
                 "now() - id * interval '1 min'"
               : "UPDATE mailroom_batches SET claimed_at = date_trunc('second', now()), "
                 "emitted_at = date_trunc('second', now())");
  rig.connection->run(long_ago ? "UPDATE tokens SET created_at = created_at - 120"
                               : "UPDATE tokens SET created_at = floor(extract(epoch FROM now()))");
  rig.connection->run("COMMIT");
  // What a dump and a restore do to rows: they are written anew, as they were.
  for (const auto* sql :
       {"CREATE TABLE dump AS SELECT * FROM tokens WHERE id <= 3", "SET session_replication_role = replica",
        "DELETE FROM tokens", "INSERT INTO tokens SELECT * FROM dump", "SELECT setval('tokens_id_seq', 3)",
        "SET session_replication_role = origin"})
    rig.connection->run(sql);
  CHECK(plan_sequence_fix(*rig.connection, 0).to_emit() == (long_ago ? 0 : 3));
  CHECK(rig.plan(to(0)).deliverable.emitted_before == 3);
  const auto history = read_token_history(*rig.connection, 2, {.queue = "mailroom"});
  CHECK(history.tokens[0].fate.outcome == (long_ago ? Outcome::handed_on : Outcome::maybe_handed_on));
  CHECK_FALSE(history.tokens[0].token.id_was_anothers);
}
