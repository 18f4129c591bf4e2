// The statements of docs/redeeming.md and the functions of examples/redeeming, as they stand there.

#include <future>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "support/actions.hpp"
#include "support/redeeming_fixture.hpp"
#include "support/redeeming_rig.hpp"

namespace mailroom::test::redeeming_test {
namespace {

using Redeem = std::function<Results(const Redemption&)>;

const std::string new_key(64, 'a');

std::shared_ptr<ProgramApplication> program(const RedeemingDatabase& database, const std::string& name) {
  using Words = std::vector<std::string>;
  // Not `python3` and `node` of PATH: Debian's packages belong to Debian's Python.
  if (name == "node")
    return std::make_shared<ProgramApplication>(database, Words{"/usr/bin/node"}, ".js", Words{});
  return std::make_shared<ProgramApplication>(database, Words{"/usr/bin/python3"}, ".py", Words{name});
}

/// An application in one language, and its database.
class Application {
 public:
  explicit Application(const std::string& name) {
    if (name == "sql") {
      redeem_ = [sql = SqlApplication(database_)](const Redemption& what) { return sql.redeem(what); };
    } else {
      redeem_ = [shared = program(database_, name)](const Redemption& what) { return shared->redeem(what); };
    }
  }

  db::Connection& owner() const { return database_.owner(); }

  Results redeem(const Redemption& redemption) const {
    auto results = redeem_(redemption);
    std::sort(results.begin(), results.end());
    return results;
  }
  /// The result of one redemption.
  std::string redeem(const queue::Action* action, const std::string& token,
                     const std::string& code = "00000") const {
    const auto results = redeem({.action = action, .token = token, .code = code});
    return results.size() == 1 ? results.front() : fmt::format("{} results", results.size());
  }
  std::string activate(const std::string& token) const { return redeem(activation_action(), token); }
  std::string recover(const std::string& token, const std::string& code) const {
    return redeem(recovery_action(), token, code);
  }

 private:
  RedeemingDatabase database_;
  Redeem redeem_;
};

#define EACH_APPLICATION GENERATE(as<std::string>{}, "sql", "psycopg2", "psycopg", "node")

std::string redeemed(const Fixture& fixture) {
  return fmt::format("redeemed {}", fixture.account);
}

std::string wrong_code(const Fixture& fixture) {
  return fixture.code == "00000" ? "00001" : "00000";
}

int count(db::Connection& owner, const std::string& rows) {
  return value<int>(owner, "SELECT count(*) FROM " + rows);
}

/// Lets `redemption` run into a token that another transaction has consumed, until `waiting` sessions wait
/// for it; then that transaction rolls back.
Results race(const Application& application, const Fixture& fixture, const Redemption& redemption,
             int waiting) {
  auto& owner = application.owner();
  std::future<Results> results;
  bool all_wait = false;
  owner.dry_run([&](pqxx::work& work) {
    db::Connection::execute(work, "UPDATE tokens SET consumed_at = 1 WHERE id = $1", fixture.id);
    results = std::async(std::launch::async, [&] { return application.redeem(redemption); });
    all_wait = eventually([&] {
      return db::Connection::execute(work,
                                     "SELECT pg_stat_clear_snapshot(), count(*) FROM pg_stat_activity WHERE "
                                     "datname = current_database() AND wait_event_type = 'Lock'")[0][1]
                 .as<int>() >= waiting;
    });
  });
  const auto finished = results.get();
  INFO("the first result: " << (finished.empty() ? "none" : finished.front()));
  REQUIRE(all_wait);
  return finished;
}

/// What a careless decoder makes of `token`: it translates the standard alphabet and skips other characters.
std::string careless_secret(const std::string& token) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string hex;
  unsigned bits = 0;
  int held = 0;
  for (auto c : token) {
    const auto at = alphabet.find(c == '+' ? '-' : c == '/' ? '_' : c);
    if (at == std::string::npos) continue;
    bits = (bits << 6 | static_cast<unsigned>(at)) & 0xffff;
    for (held += 6; held >= 4; held -= 4)
      hex += "0123456789abcdef"[bits >> (held - 4) & 0xf];
  }
  hex.resize(64, '0');
  return hex;
}

}  // namespace

TEST_CASE("the redeeming examples accept the genuine tokens of the vectors, and refuse the forged ones") {
  // Without psycopg, which verifies with the same function as psycopg2.
  const Application application(GENERATE(as<std::string>{}, "sql", "psycopg2", "node"));
  auto& owner = application.owner();
  const auto vectors = parse_json(read_file(source_directory + "/tests/vectors/tokens.json"));
  REQUIRE(vectors.size() > 20);
  for (const auto& vector : vectors) {
    for (const auto action : {activation_action(), recovery_action()}) {
      INFO(action->name << " of " << vector);
      const auto token = vector.at("token").get<std::string>();
      const bool good = vector.at("valid").get<bool>() && vector.at("action") == action->name;
      owner.run("DELETE FROM accounts");
      owner.run("INSERT INTO accounts (id, email, login, status) VALUES (1, 'a@x.example', 'a', 'active')");
      owner.run("UPDATE accounts SET status = $1 WHERE id = 1",
                action == activation_action() ? "provisioned" : "active");
      owner.run(
          "INSERT INTO tokens (account, action, secret) VALUES (1, $1::token_action, decode($2, 'hex'))",
          action->name, careless_secret(token));
      const Redemption redemption{
          .action = action,
          .token = token,
          .code = vector.at("code").is_null() ? "" : vector.at("code").get<std::string>(),
          .keys = {vector.at("key").get<std::string>()}};
      CHECK(application.redeem(redemption) == Results{good ? "redeemed 1" : "invalid"});
      CHECK(count(owner, "tokens WHERE consumed_at IS NOT NULL") == (good ? 1 : 0));
    }
  }
}

TEST_CASE("the redeeming examples activate an account once") {
  const Application application(EACH_APPLICATION);
  auto& owner = application.owner();
  const auto fixture = sign_up(owner);
  const auto other = sign_up(owner);
  CHECK(application.activate(fixture.token) == redeemed(fixture));
  CHECK(count(owner, "accounts WHERE status = 'active' AND activated_at IS NOT NULL") == 1);
  CHECK(application.activate(fixture.token) == "consumed");
  CHECK(count(owner, "tokens WHERE consumed_at IS NOT NULL") == 1);
  CHECK(application.activate(other.token) == redeemed(other));
}

TEST_CASE("the redeeming examples refuse an expired token, a wrong account and a missing row") {
  const Application application(EACH_APPLICATION);
  auto& owner = application.owner();
  const auto both = [&](const std::string& change, const std::string& reason) {
    INFO(change);
    const auto activation = sign_up(owner);
    const auto recovery = ask_for_recovery(owner);
    owner.run(change);
    CHECK(application.activate(activation.token) == reason);
    // The attempts at a code are counted for a token that exists.
    CHECK(application.recover(recovery.token, recovery.code) == (reason == "not found" ? "invalid" : reason));
    CHECK(count(owner, "tokens WHERE consumed_at > 1") == 0);
    CHECK(count(owner, "passwords") == 0);
  };
  both("UPDATE tokens SET expires_at = floor(extract(epoch FROM now()))", "expired");
  both("UPDATE tokens SET consumed_at = 1, expires_at = 1", "consumed");
  both("UPDATE accounts SET status = 'suspended'", "wrong status");
  both(
      "UPDATE accounts SET status = CASE status WHEN 'active' THEN 'provisioned' ELSE 'active' END::account_status",
      "wrong status");
  both("DELETE FROM tokens", "not found");
}

TEST_CASE("the redeeming examples accept a token of the other action nowhere") {
  const Application application(EACH_APPLICATION);
  const auto activation = sign_up(application.owner());
  CHECK(application.recover(activation.token, activation.code) == "invalid");
  const auto recovery = ask_for_recovery(application.owner());
  CHECK(application.activate(recovery.token) == "invalid");
  CHECK(count(application.owner(), "tokens WHERE consumed_at IS NOT NULL") == 0);
}

TEST_CASE("the redeeming examples accept a previous key as long as it is listed") {
  const Application application(EACH_APPLICATION);
  const auto fixture = sign_up(application.owner());
  Redemption redemption{.token = fixture.token, .keys = {new_key}};
  CHECK(application.redeem(redemption) == Results{"invalid"});
  redemption.keys = {new_key, test_key};
  CHECK(application.redeem(redemption) == Results{redeemed(fixture)});
}

TEST_CASE("of 20 concurrent redemptions of one token exactly one succeeds") {
  const Application application(EACH_APPLICATION);
  const auto fixture = sign_up(application.owner());
  Results expected(19, "consumed");
  expected.push_back(redeemed(fixture));
  CHECK(race(application, fixture, {.token = fixture.token, .copies = 20}, 20) == expected);
  CHECK(count(application.owner(), "accounts WHERE status = 'active'") == 1);
}

TEST_CASE("of 20 concurrent recoveries five are admitted, and exactly one succeeds") {
  const Application application(EACH_APPLICATION);
  const auto fixture = ask_for_recovery(application.owner());
  Results expected(4, "consumed");
  expected.insert(expected.end(), 15, "invalid");
  expected.push_back(redeemed(fixture));
  CHECK(race(application, fixture,
             {.action = recovery_action(), .token = fixture.token, .code = fixture.code, .copies = 20},
             5) == expected);
  CHECK(count(application.owner(), "passwords") == 1);
}

TEST_CASE("the redeeming examples admit five attempts at a code") {
  const Application application(EACH_APPLICATION);
  auto& owner = application.owner();
  const auto fixture = ask_for_recovery(owner);
  const auto unlucky = ask_for_recovery(owner);
  for (int attempt = 1; attempt <= 4; ++attempt)
    CHECK(application.recover(fixture.token, wrong_code(fixture)) == "invalid");
  CHECK(application.recover(fixture.token, fixture.code) == redeemed(fixture));
  for (int attempt = 1; attempt <= 5; ++attempt)
    CHECK(application.recover(unlucky.token, wrong_code(unlucky)) == "invalid");
  CHECK(application.recover(unlucky.token, unlucky.code) == "invalid");
  CHECK(count(owner, "passwords") == 1);

  const auto invented = signed_token(recovery_action(), std::string(64, '0'), "00000");
  CHECK(application.recover(invented, "00000") == "invalid");
  CHECK(count(owner, "recovery_attempts") == 2);
  owner.run("DELETE FROM tokens WHERE id = $1", fixture.id);
  owner.run(code_block(redeeming_document, "sql", "DELETE FROM recovery_attempts"));
  CHECK(count(owner, "recovery_attempts") == 1);
}

TEST_CASE("a password that cannot be stored leaves the token for another attempt") {
  const Application application(EACH_APPLICATION);
  auto& owner = application.owner();
  const auto fixture = ask_for_recovery(owner);
  owner.run("ALTER TABLE passwords ADD CONSTRAINT none CHECK (false)");
  CHECK_THAT(application.recover(fixture.token, fixture.code), Catch::Matchers::StartsWith("raised"));
  CHECK(count(owner, "tokens WHERE consumed_at IS NOT NULL") == 0);
  owner.run("ALTER TABLE passwords DROP CONSTRAINT none");
  CHECK(application.recover(fixture.token, fixture.code) == redeemed(fixture));
}

TEST_CASE("the redeeming examples refuse a file that does not hold a key") {
  const std::string name = GENERATE(as<std::string>{}, "psycopg2", "node");
  const RedeemingDatabase database;
  const auto token = signed_token(activation_action(), std::string(64, '0'), {});
  for (const auto& text : {std::string(), std::string(62, 'a'), std::string(66, 'a'), std::string(64, 'g')}) {
    INFO(name << " with " << text);
    const auto finished = program(database, name)->end_at({.token = token, .keys = {text}});
    CHECK(finished.status == 1);
    CHECK(finished.errors.find("does not hold 64 hexadecimal digits") != std::string::npos);
  }
}

TEST_CASE("the key and the token that redeeming.md shows belong together") {
  const auto text = read_file(source_directory + "/" + redeeming_document);
  const auto match = Pattern("\n([0-9a-f]{64})\n([A-Za-z0-9_-]{86})\n").first(text);
  REQUIRE(match);
  crypto::Hmac hmac(crypto::Key::from_hex((*match)[1], "the document"));
  const auto token = crypto::decode_token((*match)[2]);
  REQUIRE(token);
  CHECK(crypto::is_signed(hmac, *token, "/activate", {}));
}

}  // namespace mailroom::test::redeeming_test
