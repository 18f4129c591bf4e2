// Two tokens that had the same id, one after the other: events of the first one are not attributed to the
// second.

#include <fmt/format.h>

#include "accounts/suspension.hpp"
#include "accounts/token_lookup.hpp"
#include "cmd/audit/audit_report.hpp"
#include "replay/sequence_fix.hpp"
#include "support/history_play.hpp"
#include "support/rewind_rig.hpp"
#include "support/test_feed.hpp"

namespace mailroom::test::reused_id_test {
namespace {

/// Ids 1 to 4 were emitted in batch 1. Then the tokens were truncated, and `seconds` later 1 to 3 were
/// assigned to new tokens.
struct ReusedIds {
  explicit ReusedIds(int seconds = 60) {
    insert_accounts(*rig.connection, 4, "before");
    emit(*rig.session);
    // One transaction, so that all happens within one second; savepoints, so that rows show which was written
    // first.
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

  audit::TokenReport report_of(std::int64_t token) {
    const auto history = audit::read_token_history(*rig.connection, token, {.queues = {"mailroom"}});
    REQUIRE(history.tokens.size() == 1);
    return history.tokens.front();
  }
  std::string status_of(std::int64_t token) { return fate::outcome_name(report_of(token).status.outcome); }
  Names timeline_of(std::int64_t token) {
    return event_names(audit::read_token_history(*rig.connection, token, {.queues = {"mailroom"}}).timeline);
  }

  std::vector<accounts::TokenEmission> emissions_of(std::int64_t token) {
    const auto bytes = value<std::string>(
        *rig.connection, fmt::format("SELECT encode(secret, 'hex') FROM tokens WHERE id = {}", token));
    crypto::Secret secret{};
    for (std::size_t i = 0; i < secret.size(); ++i)
      secret[i] = static_cast<std::uint8_t>(std::stoi(bytes.substr(2 * i, 2), nullptr, 16));
    const auto record = accounts::find_token(*rig.connection, secret, "activation");
    REQUIRE(record);
    return record->emissions;
  }

  void fix() { replay::carry_out_sequence_fix(*rig.connection, {}, rewind_author, "token_insert"); }

  RewindRig rig;
};

Shown of_account(const TestDatabase& database, std::int64_t account) {
  feed::EventFilter filter;
  filter.accounts = {account};
  Shown told;
  for (const auto& event : TestFeed(database, TestFeed::everything(), filter).take())
    told.push_back(short_text(event));
  return told;
}

}  // namespace

TEST_CASE("the outcome of a token is not that of an earlier token with its id") {
  ReusedIds ids;
  CHECK(ids.status_of(2) == "missed");
  CHECK(ids.report_of(2).token.id_was_anothers);
  CHECK(cmd::status_text(ids.report_of(2), {}).find("--fix-sequence emits it") != std::string::npos);
  CHECK(ids.timeline_of(2) == Names{"issued"});
  CHECK(ids.emissions_of(2).empty());
  CHECK(of_account(ids.rig.database, 2) == Shown{"created 2"});

  ids.fix();
  CHECK(ids.status_of(2) == "in_replay");
  CHECK(ids.rig.drain() == Ids{1, 2, 3});
  const auto after = ids.report_of(2);
  CHECK(after.status.outcome == fate::Outcome::emitted);
  CHECK(after.status.times == 1);
  CHECK(after.status.maybe == 0);
  CHECK(after.token.id_was_anothers);
  CHECK(ids.timeline_of(2) == Names{"issued", "replayed", "emitted"});
  REQUIRE(ids.emissions_of(2).size() == 1);
  CHECK(ids.emissions_of(2)[0].is_certain);
  CHECK(ids.emissions_of(2)[0].batch == after.status.batch->id);
  CHECK(of_account(ids.rig.database, 2).size() == 2);
}

TEST_CASE("an event of an id in the same second in which its token was created is reported as uncertain") {
  ReusedIds ids(0);
  CHECK(ids.status_of(2) == "maybe_emitted");
  CHECK(cmd::status_text(ids.report_of(2), {}).find("unless that was another token with its id") !=
        std::string::npos);
  REQUIRE(ids.emissions_of(2).size() == 1);
  CHECK_FALSE(ids.emissions_of(2)[0].is_certain);
  ids.fix();
  CHECK(ids.rig.drain() == Ids{1, 2, 3});
  const auto after = ids.report_of(2);
  CHECK(after.status.times == 1);
  CHECK(after.status.maybe == 1);
}

TEST_CASE("the outcome of a removed token is uncertain once its id may have had two tokens") {
  ReusedIds ids;
  ids.rig.connection->run("DELETE FROM accounts WHERE id = 2");
  CHECK(ids.status_of(2) == "maybe_emitted");
  // This id has not been reused yet.
  CHECK(ids.status_of(4) == "emitted");
  ids.fix();
  ids.rig.drain();
  CHECK(ids.status_of(2) == "maybe_emitted");
  CHECK(ids.status_of(4) == "emitted");
}

TEST_CASE("a replay counts a token as emitted before, but not an earlier token with its id") {
  ReusedIds ids;
  auto request = to(replay::RewindTarget::Kind::start);
  CHECK(ids.rig.plan(request).deliverable.count == 3);
  CHECK(ids.rig.plan(request).deliverable.emitted_before == 0);
  ids.fix();
  CHECK(ids.rig.plan(request).deliverable.emitted_before == 0);
  CHECK(ids.rig.drain(2) == Ids{1, 2, 3});
  CHECK(ids.rig.plan(request).deliverable.emitted_before == 3);
}

TEST_CASE("a lifted suspension emits a token whose id was emitted for an earlier token") {
  ReusedIds ids;
  const auto accounts = accounts::find_accounts(*ids.rig.connection, {"2"});
  const auto changes = ids.rig.connection->transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, rewind_author);
    return accounts::restore_accounts(transaction, {"mailroom"}, accounts);
  });
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].tokens == Ids{2});
}

TEST_CASE("a restored token keeps its record, and is not missed unless claimed in the last second") {
  RewindRig rig;
  insert_accounts(*rig.connection, 3, "early");
  emit(*rig.session);
  insert_accounts(*rig.connection, 2, "lost");
  emit(*rig.session);
  // Everything happened before the restore: some time ago, or within the second of the last claim, which is
  // the only uncertain case.
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
  // Rewrites the rows unchanged, as a dump and a restore would.
  for (const auto* sql :
       {"CREATE TABLE dump AS SELECT * FROM tokens WHERE id <= 3", "SET session_replication_role = replica",
        "DELETE FROM tokens", "INSERT INTO tokens SELECT * FROM dump", "SELECT setval('tokens_id_seq', 3)",
        "SET session_replication_role = origin"})
    rig.connection->run(sql);
  CHECK(replay::plan_sequence_fix(*rig.connection, {}).to_emit() == (long_ago ? 0 : 3));
  CHECK(rig.plan(to(0)).deliverable.emitted_before == 3);
  const auto history = audit::read_token_history(*rig.connection, 2, {.queues = {"mailroom"}});
  CHECK(history.tokens[0].status.outcome ==
        (long_ago ? fate::Outcome::emitted : fate::Outcome::maybe_emitted));
  CHECK_FALSE(history.tokens[0].token.id_was_anothers);
}

}  // namespace mailroom::test::reused_id_test
