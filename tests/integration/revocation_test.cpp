// Revoked tokens end at once: they are neither mailed nor redeemed, nothing revives them, and audit says who
// did it.

#include "replay/revocation.hpp"

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "replay/resend.hpp"
#include "replay/sequence_fix.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/rewind_rig.hpp"

namespace mailroom::test::revocation_test {

using namespace std::chrono_literals;

namespace {

struct RevokeRig : RewindRig {
  explicit RevokeRig(int accounts) { insert_accounts(*connection, accounts); }

  std::int64_t revoke(replay::RevocationRequest request) {
    request.queues = {"mailroom"};
    return replay::carry_out_revocation(*connection, request, rewind_author);
  }
  replay::RevocationPlan plan(replay::RevocationRequest request) {
    request.queues = {"mailroom"};
    return replay::plan_revocation(*connection, request);
  }
  std::string live() {
    return value<std::string>(
        *connection,
        "SELECT coalesce(string_agg(id::text, ' ' ORDER BY id), '') FROM tokens "
        "WHERE consumed_at IS NULL AND expires_at > extract(epoch FROM clock_timestamp())");
  }
};

replay::RevocationRequest of_accounts(std::vector<std::int64_t> accounts) {
  replay::RevocationRequest request;
  request.selection.accounts = std::move(accounts);
  request.asked = request.selection;
  return request;
}

}  // namespace

TEST_CASE("a revoked token is never emitted, and cannot be redeemed") {
  RevokeRig rig(5);
  rig.connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 1");
  rig.connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 2");
  const auto plan = rig.plan(of_accounts({1, 2, 3, 4}));
  CHECK(plan.live == 2);
  CHECK(plan.accounts == 2);
  CHECK(plan.waiting == 2);
  CHECK(plan.consumed == 1);
  CHECK(plan.expired == 1);
  CHECK(rig.revoke(of_accounts({1, 2, 3, 4})) == 2);
  CHECK(rig.revoke(of_accounts({1, 2, 3, 4})) == 0);
  CHECK(rig.live() == "5");
  CHECK(rig.drain() == Ids{5});
  // As docs/redeeming.md has it.
  CHECK(
      rig.connection
          ->run(
              "UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id = 3 AND consumed_at IS NULL "
              "AND expires_at > extract(epoch FROM now()) RETURNING id")
          .empty());
  const auto operation = rig.connection->run("SELECT kind, actor, reason, details FROM mailroom_operations");
  REQUIRE(operation.size() == 1);
  CHECK(operation[0][0].as<std::string>() == "revoke");
  CHECK(operation[0][1].as<std::string>() == "tester@host");
  const auto details = parse_json(operation[0][3].as<std::string>());
  CHECK(details["ids"] == "{[3,5)}");
  CHECK(details["revoked"] == 2);
  CHECK(details["accounts"] == nlohmann::json{1, 2, 3, 4});
}

TEST_CASE("all tokens, or those of an action, end by one command") {
  RevokeRig rig(3);
  rig.connection->run("UPDATE accounts SET status = 'active' WHERE id = 3");
  rig.connection->run("INSERT INTO tokens (account, action) VALUES (3, 'password_recovery')");
  replay::RevocationRequest recoveries;
  recoveries.selection.actions = {"password_recovery"};
  CHECK(rig.revoke(recoveries) == 1);
  CHECK(rig.live() == "1 2 3");
  CHECK(rig.revoke({}) == 3);
  CHECK(rig.live().empty());
  CHECK(rig.drain().empty());
}

TEST_CASE("tokens of a queue's action end, and the others stay") {
  RevokeRig rig(1);
  rig.connection->run("UPDATE accounts SET status = 'active' WHERE id = 1");
  rig.connection->run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
  rig.connection->run(
      "INSERT INTO mailroom_queues (name, actions) VALUES ('mailroom', '{password_recovery}')");
  replay::RevocationRequest taken;
  taken.only_taken = true;
  CHECK(rig.revoke(taken) == 1);
  CHECK(rig.live() == "1");
}

TEST_CASE("tokens that one key signed end, also those of an abandoned attempt") {
  RevokeRig rig(6);
  CHECK(rig.drain(2).size() == 6);
  rig.connection->run("UPDATE mailroom_batches SET key = 'leaked' WHERE ids @> 1::bigint");
  rig.connection->run(
      "UPDATE mailroom_batches SET key = 'new', earlier_attempts = '[{\"attempt\": 1, \"key\": \"leaked\"}]' "
      "WHERE ids @> 3::bigint");
  replay::RevocationRequest request;
  request.keys = {"leaked"};
  CHECK(rig.revoke(request) == 4);
  CHECK(rig.live() == "5 6");
  request.keys = {"other, \"quoted\""};
  CHECK(rig.plan(request).live == 0);
}

TEST_CASE("the plan tells what is in a batch now from what waits") {
  RevokeRig rig(3);
  const auto reply = rig.session->claim({.limit = 2, .partial = true});
  REQUIRE(reply.lease);
  const auto plan = rig.plan({});
  CHECK(plan.live == 3);
  CHECK(plan.leased == 2);
  CHECK(plan.waiting == 1);
  CHECK(rig.revoke({}) == 3);
  // What a consumer has read by then it emits, so the plan counts it; no later claim does.
  CHECK(rig.live().empty());
}

TEST_CASE("no extension revives a revoked token") {
  RevokeRig rig(3);
  CHECK(rig.drain().size() == 3);
  CHECK(rig.revoke(of_accounts({1})) == 1);
  rig.connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 2");
  replay::ResendRequest resend{.queue = "mailroom", .extension = 900s};
  const auto plan = replay::plan_resend(*rig.connection, resend);
  CHECK(plan.sent == Ids{2, 3});
  CHECK(plan.count(replay::ResendChoice::revoked) == 1);
  auto rewind = to(0);
  rewind.extension = 900s;
  CHECK(replay::plan_rewind(*rig.connection, rewind).revived.count == 1);
  CHECK(rig.carry_out(rewind) == 2);
  CHECK(rig.drain() == Ids{2, 3});
  CHECK(rig.live() == "2 3");
}

TEST_CASE("audit and tail say who revoked a token, and why") {
  RevokeRig rig(2);
  const OperatorRig person(rig.database);
  const auto asked = person.mailroom({"revoke", "user1@test.example", "--reason", "mailbox taken over"});
  CHECK(asked.status == 7);
  CHECK(rig.live() == "1 2");
  const auto done = person.type("mailroom revoke user1@test.example --reason 'mailbox taken over'");
  INFO(done.output);
  CHECK(done.status == 0);
  CHECK(rig.live() == "2");
  CHECK(rig.drain() == Ids{2});
  const auto audit = person.mailroom({"audit", "token:1"}).output;
  INFO(audit);
  CHECK(audit.find("skipped") != std::string::npos);
  CHECK(Pattern("revoked [0-9]+s ago by ").occurs_in(audit));
  CHECK(audit.find("  revoked  token 1, account 1, revoked 1, by ") != std::string::npos);
  CHECK(audit.find("mailbox taken over") != std::string::npos);
  CHECK(person.mailroom({"tail", "--state", "revoked"}).output.find("revoked    1 token, by ") !=
        std::string::npos);
}

TEST_CASE("a revocation of nobody is a mistake, and one that comes again is none") {
  RevokeRig rig(1);
  const OperatorRig person(rig.database);
  CHECK(person.mailroom({"revoke"}).status == 2);
  CHECK(person.mailroom({"revoke", "--all", "user1@test.example"}).status == 2);
  CHECK(person.mailroom({"revoke", "nobody@test.example", "-y"}).status == 8);
  CHECK(person.mailroom({"revoke", "--key", "0123456789abcdef", "-y"}).status == 8);
  CHECK(person.mailroom({"revoke", "token:1", "batch:2", "-y"}).status == 2);
  CHECK(person.mailroom({"revoke", "--all", "-y"}).status == 0);
  CHECK(person.mailroom({"revoke", "--all", "-y"}).status == 0);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_operations") == 1);
}

}  // namespace mailroom::test::revocation_test
