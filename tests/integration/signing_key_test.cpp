// Which key a collector signs with, in status and in the log after SIGHUP.

#include <csignal>
#include <set>

#include "base/json.hpp"
#include "crypto/key.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/doctor_rig.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::signing_key_test {
namespace {

const std::string other_key(64, 'b');

std::string fingerprint(const std::string& key) {
  return crypto::Key::from_hex(key, "the test").fingerprint();
}

nlohmann::json status(const TestDatabase& database) {
  const auto run =
      run_to_end({mailroom_binary, "status", "-o", "json"}, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
  return parse_json(run.output);
}

std::multiset<std::string> keys(const nlohmann::json& status) {
  std::multiset<std::string> all;
  for (const auto& collector : status.at("collectors"))
    all.insert(collector.at("key").is_null() ? "" : collector.at("key").get<std::string>());
  return all;
}

bool fails_for_keys(const nlohmann::json& status) {
  const auto& findings = status.at("findings");
  return std::any_of(findings.begin(), findings.end(),
                     [](const nlohmann::json& finding) { return finding.at("code") == "different_keys"; });
}

}  // namespace

TEST_CASE("status shows the key of each collector, and fails while keys differ") {
  TestDatabase database;
  const TemporaryDirectory directory;
  const auto file = directory.write("key", other_key);
  TestCollector first(database, {});
  TestCollector second(database, {"--key-file", file});
  REQUIRE(first.connected());
  REQUIRE(second.connected());
  const std::multiset<std::string> different{fingerprint(test_key), fingerprint(other_key)};
  CHECK(eventually([&] { return keys(status(database)) == different; }));
  CHECK(fails_for_keys(status(database)));
  directory.write("key", test_key);
  second.process().signal(SIGHUP);
  const std::multiset<std::string> same{fingerprint(test_key), fingerprint(test_key)};
  CHECK(eventually([&] { return keys(status(database)) == same; }));
  CHECK_FALSE(fails_for_keys(status(database)));
  const auto text =
      run_to_end({mailroom_binary, "status"}, {{"MAILROOM_DATABASE_URL", database.conninfo()}}).output;
  CHECK(count(text, "\nsigning key: " + fingerprint(test_key) + "\n") == 1);
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);
}

TEST_CASE("links of a key that nobody has are counted until each has a newer mail, is used or is over") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  const auto run = [&](const std::string& key, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{mailroom_binary};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_to_end(command,
                      {{"MAILROOM_DATABASE_URL", database.conninfo()}, {"MAILROOM_SECRET_KEY", key}});
  };
  REQUIRE(run(other_key, {"collect", "--once"}).status == 0);
  TestCollector collector(database, {});
  REQUIRE(collector.connected());
  REQUIRE(eventually([&] { return keys(status(database)).count(fingerprint(test_key)) == 1; }));
  const auto unused = [&]() -> std::string {
    const auto now = status(database);
    for (const auto& finding : now.at("findings"))
      if (finding.at("code") == "signed_with_other_key") {
        const auto text = finding.at("text").get<std::string>();
        return text.substr(0, text.find(" of"));
      }
    return "none";
  };
  CHECK(unused() == "5 unused links");
  connection->run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id = 1");
  CHECK(run(test_key, {"revoke", "token:2", "--yes"}).status == 0);
  CHECK(unused() == "3 unused links");
  const auto old = fingerprint(other_key);
  const auto listed = run(test_key, {"audit", "--key", old, "--since", "1d", "-o", "csv"});
  CHECK(listed.status == 0);
  CHECK(count(listed.output, "\n") == 6);
  CHECK(run(test_key, {"resend", "token:3", "--yes"}).status == 0);
  CHECK(eventually([&] { return unused() == "2 unused links"; }));
  CHECK(run(test_key, {"resend", "--key", old, "--since", "1d", "--yes"}).status == 0);
  CHECK(eventually([&] { return unused() == "none"; }));
  CHECK(value<int>(*connection, "SELECT sum(emitted) FROM mailroom_batches") == 8);
  CHECK(count(run(test_key, {"revoke", "--key", old, "--dry-run"}).output, "\n") > 0);
  CHECK(run(test_key, {"revoke", "--key", "0eae", "--dry-run"}).status == 2);
  CHECK(collector.stop() == 0);
}

TEST_CASE("a session without a key shows none, nor does a session whose key another one has locked") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("SELECT mailroom_attach('mailroom')");
  CHECK(keys(status(database)) == std::multiset<std::string>{""});
  const auto stranger = database.connect();
  stranger->run("SELECT pg_advisory_lock(('x' || $1::text)::bit(64)::bigint)", fingerprint(test_key));
  TestCollector collector(database, {});
  REQUIRE(collector.connected());
  CHECK(eventually([&] { return keys(status(database)) == std::multiset<std::string>{"", ""}; }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("SIGHUP logs the changed settings and the key, without any secret") {
  TestDatabase database;
  const TemporaryDirectory directory;
  directory.write("key", test_key);
  const auto key_file = "signing:\n  key_file: " + (directory.path() / "key").string() + "\n";
  const auto url = [&](const std::string& password) {
    return "database:\n  url: " + database.conninfo() + " password=" + password + "\n";
  };
  const auto file = directory.write("mailroom.yaml", key_file + url("sesame1"));
  TestCollector collector("", {"--config", file}, {{"MAILROOM_SECRET_KEY", ""}});
  REQUIRE(collector.connected());
  directory.write("key", other_key);
  directory.write("mailroom.yaml",
                  key_file + url("sesame2") + "collect:\n  batch_limit: 20\nlog:\n  level: debug\n");
  collector.process().signal(SIGHUP);
  REQUIRE(eventually([&] { return count(collector.log(), "configuration reloaded") == 1; }));
  const auto log = collector.log();
  INFO(log);
  CHECK(count(log, "changed setting=collect.batch_limit from=10 to=20\n") == 1);
  CHECK(count(log, "changed, effective after a restart setting=log.level from=info to=debug\n") == 1);
  CHECK(count(log, "changed setting=\"signing key\" from=" + fingerprint(test_key) +
                       " to=" + fingerprint(other_key) + "\n") == 1);
  CHECK(count(log, "changed setting=database.url ") == 1);
  CHECK(count(log, "configuration reloaded changed=4 took=") == 1);
  CHECK(count(log, " signing_key=" + fingerprint(other_key) + "\n") == 1);
  CHECK(count(log, "sesame") == 0);
  CHECK(collector.connected(2));
  CHECK(collector.stop() == 0);
}

TEST_CASE("the doctor fails where a consumer signs with another key, and warns of a previous one") {
  TestDatabase database;
  TestCollector collector(database, {});
  REQUIRE(collector.connected());
  REQUIRE(eventually([&] { return keys(status(database)).count(fingerprint(test_key)) == 1; }));
  DoctorRig rig(database);
  rig.environment["MAILROOM_SECRET_KEY"] = test_key;
  CHECK(summary(rig.examine("collectors")) == "ok: 1 is connected");
  rig.environment["MAILROOM_SECRET_KEY"] = other_key;
  const auto findings = rig.examine("collectors");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[0].reason.find("signs with the key " + fingerprint(test_key)) != std::string::npos);
  rig.environment["MAILROOM_PREVIOUS_SECRET_KEYS"] = test_key;
  CHECK(rig.examine("collectors")[0].verdict == doctor::CheckVerdict::warning);
}

}  // namespace mailroom::test::signing_key_test
