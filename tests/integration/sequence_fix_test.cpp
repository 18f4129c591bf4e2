// The token sequence is behind a cursor, for whatever reason: the fix that every command prints emits the
// tokens created since, and none twice.

#include "replay/sequence_fix.hpp"

#include <csignal>
#include <fmt/format.h>

#include "base/json.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::sequence_fix_test {
namespace {

const std::string advice = "mailroom rewind-cursor --fix-sequence";

/// A queue that collectors drain, and an operator.
struct Patient : DatabaseRig {
  OperatorRig rig{database};
  std::map<std::string, int> emitted{};  ///< token text to number of emissions

  void insert(int count, const std::string& prefix) { insert_accounts(*connection, count, prefix); }

  /// Runs a collector, counts what it emits, and returns its exit status.
  int collect(const std::string& queue = "mailroom") {
    const auto run = rig.mailroom({"collect", "--once", "--format", "jsonl", "--queue", queue});
    for (const auto& token : emitted_tokens(run.output))
      ++emitted[token.at("token").get<std::string>()];
    last_errors = run.errors;
    return run.status;
  }

  /// Makes all rows so many seconds older.
  void age(int seconds) const {
    connection->run(fmt::format(
        "UPDATE tokens SET created_at = created_at - {0}, expires_at = expires_at + 3600", seconds));
    connection->run(
        fmt::format("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '{0} s', "
                    "emitted_at = emitted_at - interval '{0} s'",
                    seconds));
  }

  /// The fix, as every command prints it.
  std::string advised() {
    const auto status = rig.mailroom({"status"});
    INFO(status.output);
    CHECK(status.status == 8);
    const auto fixes = fixes_in(status.output);
    REQUIRE_FALSE(fixes.empty());
    CHECK(fixes.front() == advice);
    CHECK(doctor_advises());
    CHECK(collect() == 1);
    CHECK(last_errors.find("hint: tokens were truncated or restored; run " + advice) != std::string::npos);
    CHECK(rig.mailroom({"rewind-cursor", "--to-start", "--dry-run"}).output.find("--fix-sequence ") !=
          std::string::npos);
    return fixes.front();
  }

  bool doctor_advises() const {
    const auto fixes = fixes_in(rig.mailroom({"doctor"}).output);
    return std::find(fixes.begin(), fixes.end(), advice) != fixes.end();
  }

  void type_advice() {
    const auto run = rig.type(advised());
    INFO(run.output);
    CHECK(run.status == 0);
  }

  /// Checks that `count` tokens were emitted in total, each once, and that nothing is left to do.
  void check_emitted(std::size_t count) {
    CHECK(collect() == 0);
    CHECK(emitted.size() == count);
    CHECK(std::all_of(emitted.begin(), emitted.end(), [](const auto& token) { return token.second == 1; }));
    CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_gaps") == 0);
    CHECK_FALSE(doctor_advises());
    // Those whose tokens the test deleted wait for none.
    connection->run(
        "UPDATE accounts a SET status = 'active' WHERE NOT EXISTS (SELECT FROM tokens t WHERE t.account = a.id)");
    CHECK(rig.mailroom({"status"}).status == 0);
    CHECK(rig.type(advice).output.find("nothing to do") != std::string::npos);
  }

  std::int64_t sequence() const {
    return value<std::int64_t>(*connection, "SELECT last_value FROM tokens_id_seq");
  }

  std::string last_errors{};
};

/// The table `tokens` with its sequence, as pg_dump writes them.
class TokenDump {
 public:
  explicit TokenDump(const Patient& patient) : conninfo_(patient.database.conninfo()) {
    CHECK(run("exec pg_dump --data-only --table=tokens -f \"$2\" \"$1\"") == 0);
  }
  void restore() const {
    CHECK(run("PGOPTIONS='-c session_replication_role=replica' exec psql -Xqb -v ON_ERROR_STOP=1 -d \"$1\" "
              "-c 'DELETE FROM tokens' -f \"$2\" > \"$2.out\"") == 0);
  }

 private:
  int run(const std::string& command) const {
    return run_to_end({"/bin/sh", "-c", command, "sh", conninfo_, directory_.path() / "tokens.sql"}, {})
        .status;
  }

  std::string conninfo_;
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("after a truncation the tokens created since are emitted, whatever second they were created in") {
  Patient patient;
  patient.insert(5, "before");
  REQUIRE(patient.collect() == 0);
  const int age = GENERATE(0, 60);
  patient.age(age);
  patient.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  patient.insert(3, "after");
  patient.type_advice();
  CHECK(patient.sequence() == 5);
  patient.insert(2, "later");
  patient.check_emitted(10);
}

TEST_CASE("after a restore from a dump only the tokens created since are emitted") {
  Patient patient;
  patient.insert(20, "early");
  REQUIRE(patient.collect() == 0);
  patient.age(60);
  const TokenDump dump(patient);
  patient.insert(10, "lost");
  REQUIRE(patient.collect() == 0);
  dump.restore();
  patient.insert(4, "since");
  REQUIRE(value<int>(*patient.connection, "SELECT max(id) FROM tokens") == 24);
  patient.type_advice();
  patient.insert(1, "later");
  patient.check_emitted(35);
  CHECK(value<int>(*patient.connection, "SELECT max(id) FROM tokens") == 31);
}

TEST_CASE("after a sequence was set back only the tokens that fill its gaps are emitted") {
  Patient patient;
  patient.insert(8, "early");
  REQUIRE(patient.collect() == 0);
  patient.connection->run("DELETE FROM tokens WHERE id IN (3, 4, 8)");
  patient.connection->run("SELECT setval('tokens_id_seq', 2)");
  patient.insert(2, "gap");
  patient.type_advice();
  CHECK(patient.sequence() == 8);
  patient.check_emitted(10);
}

TEST_CASE("a sequence behind only the newest token is fixed, so that inserts no longer fail") {
  Patient patient;
  patient.insert(5, "early");
  patient.connection->run("SELECT setval('tokens_id_seq', 2)");
  REQUIRE(patient.doctor_advises());
  CHECK(patient.rig.type(advice).status == 0);
  patient.insert(1, "later");
  patient.check_emitted(6);
}

TEST_CASE("missed tokens are found even if the sequence has overtaken the cursor") {
  Patient patient;
  patient.insert(5, "before");
  REQUIRE(patient.collect() == 0);
  patient.age(60);
  patient.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  patient.insert(7, "after");
  // No claim has noticed: only the doctor reports a problem.
  REQUIRE(patient.collect() == 0);
  CHECK(patient.emitted.size() == 7);
  CHECK(patient.rig.mailroom({"status"}).status == 0);
  REQUIRE(patient.doctor_advises());
  CHECK(patient.rig.type(advice).status == 0);
  patient.check_emitted(12);
}

TEST_CASE("every queue emits the tokens that it has missed") {
  Patient patient;
  patient.connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 0)");
  patient.insert(4, "early");
  REQUIRE(patient.collect("second") == 0);
  patient.insert(4, "more");
  REQUIRE(patient.collect() == 0);
  patient.age(60);
  CHECK(patient.emitted.size() == 8);
  patient.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  patient.insert(6, "after");
  patient.emitted.clear();
  patient.type_advice();
  CHECK(patient.sequence() == 8);
  REQUIRE(patient.collect("second") == 0);
  CHECK(patient.emitted.size() == 6);
  patient.emitted.clear();
  patient.check_emitted(6);
}

TEST_CASE("the fix is refused while a transaction may still show tokens, and then emits them too") {
  Patient patient;
  patient.insert(5, "before");
  REQUIRE(patient.collect() == 0);
  patient.age(60);
  patient.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  const auto open = patient.database.connect("shop");
  open->run("BEGIN");
  insert_accounts(*open, 1, "open");
  patient.insert(1, "after");
  const auto refused = patient.rig.mailroom({"rewind-cursor", "--fix-sequence", "--yes"});
  CHECK(refused.status == 6);
  CHECK(refused.errors.find(fmt::format("it is pid {} (shop", open->backend_pid())) != std::string::npos);
  CHECK(patient.sequence() == 2);
  CHECK(value<int>(*patient.connection, "SELECT count(*) FROM mailroom_operations") == 0);
  open->run("COMMIT");
  patient.type_advice();
  patient.check_emitted(7);
}

TEST_CASE("a batch that was in flight does not emit another token with an old id") {
  Patient patient;
  patient.insert(5, "before");
  auto dying = attach(patient.database);
  REQUIRE(dying->claim({.limit = 5}).lease);
  patient.age(60);
  patient.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  patient.insert(3, "after");
  dying.reset();
  patient.type_advice();
  CHECK(patient.rig.mailroom({"status"}).output.find("pending:     3 (3 in replay)") != std::string::npos);
  REQUIRE(eventually([&] { return patient.collect() == 0 && patient.emitted.size() == 3; }));
  patient.check_emitted(3);
}

TEST_CASE(
    "of the missed tokens those that are due or revived are emitted, and a move to the end is respected") {
  Patient patient;
  patient.insert(9, "before");
  REQUIRE(patient.collect() == 0);
  patient.age(60);
  patient.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  patient.insert(6, "after");
  patient.connection->run("UPDATE tokens SET expires_at = 5 WHERE id IN (1, 2)");
  patient.connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 3");
  patient.connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 4");
  const auto plan = replay::plan_sequence_fix(*patient.connection, {});
  REQUIRE(plan.queues.size() == 1);
  CHECK(plan.queues[0].due == 2);
  CHECK(plan.queues[0].expired == 2);
  CHECK(plan.queues[0].wrong_status == 1);
  CHECK(replay::plan_sequence_fix(*patient.connection, std::chrono::minutes(15)).to_emit() == 4);
  REQUIRE(patient.rig.mailroom({"rewind-cursor", "--fix-sequence", "--extend", "15m", "--yes"}).status == 0);
  patient.insert(2, "passed");
  REQUIRE(patient.rig.mailroom({"rewind-cursor", "--to-end", "--yes"}).status == 0);
  CHECK(replay::plan_sequence_fix(*patient.connection, {}).changes_nothing());
  REQUIRE(patient.collect() == 0);
  CHECK(patient.emitted.size() == 13);
}

TEST_CASE("a token of an adopted database whose ids were never claimed is not taken for missed") {
  Patient patient;
  patient.insert(5, "old");
  patient.connection->run("UPDATE jobs SET last_seq = 9");
  CHECK(replay::plan_sequence_fix(*patient.connection, {}).to_emit() == 0);
  patient.type_advice();
  patient.insert(1, "new");
  patient.check_emitted(1);
}

TEST_CASE("the check of the sequence leaves many new tokens out") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  CHECK(replay::check_sequence(*connection).is_complete);
  connection->run("SET session_replication_role = replica");
  connection->run(
      "INSERT INTO tokens (id, account, action) SELECT g, 1, 'activation' FROM generate_series(2, 50001) g");
  const auto fix = replay::check_sequence(*connection);
  CHECK_FALSE(fix.is_complete);
  CHECK(fix.newest_token == 50001);
  REQUIRE(fix.queues.size() == 1);
  CHECK(fix.queues[0].due == 0);
}

}  // namespace mailroom::test::sequence_fix_test
