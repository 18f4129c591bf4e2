// mailroom never writes a secret, signed token, code, key or password, at any log level and in any format.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::secrets_test {
namespace {

using Arguments = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

const std::string key = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
const std::string password = "Pa55-of-nobody";
/// As whole words these are never ids, times or pids, because those do not begin with a zero.
const std::vector<std::string> codes{"09173", "00481", "07777"};

/// Returns the first of `secrets` in `text`; empty if there is none.
std::string found_in(const std::string& text, const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets) {
    if (text.find(secret) != std::string::npos) return secret;
  }
  for (const auto& code : codes) {
    if (Pattern("\\b" + code + "\\b").occurs_in(text)) return code;
  }
  return {};
}

/// A database with emitted tokens of both kinds, and every secret of them.
class SecretWorld {
 public:
  SecretWorld() : connection(database.connect()) {
    insert_accounts(*connection, 6);
    connection->run("UPDATE accounts SET status = 'active' WHERE id <= 3");
    for (std::size_t i = 0; i < codes.size(); ++i) {
      connection->run("INSERT INTO tokens (account, action, code) VALUES ($1, 'password_recovery', $2)",
                      i + 1, codes[i]);
    }
    variables = {{"MAILROOM_DATABASE_URL", database.conninfo()}};
    note_secrets();
  }

  /// Runs mailroom with `more` in addition to the database and the log level.
  FinishedRun mailroom(Arguments words, const Variables& more) const {
    words.insert(words.begin(), mailroom_binary);
    auto all = variables;
    for (const auto& [name, text] : more)
      all[name] = text;
    return run_to_end(words, all);
  }

  /// Checks that stderr has no secret, nor stdout unless the command writes tokens.
  void check(const Arguments& words, const Variables& more) const {
    const auto run = mailroom(words, more);
    const bool writes_tokens = words[0] == "collect";
    INFO(fmt::format("{} …, exit status {}", words[0].substr(0, 20), run.status));
    CHECK(found_in(run.errors, secrets) == "");
    if (!writes_tokens) CHECK(found_in(run.output, secrets) == "");
  }

  TestDatabase database;
  std::unique_ptr<db::Connection> connection;
  Variables variables;
  std::vector<std::string> secrets{key, password};
  std::string token;
  std::string recovery;

 private:
  void note_secrets() {
    const auto run = mailroom({"collect", "--once", "--format", "jsonl"}, {{"MAILROOM_SECRET_KEY", key}});
    REQUIRE(run.status == 0);
    for (const auto& each : emitted_tokens(run.output)) {
      const auto text = each.at("token").get<std::string>();
      (each.at("action") == "activation" ? token : recovery) = text;
      // The start of the token, which holds its secret, and the end of its signature.
      secrets.push_back(text.substr(0, 42));
      secrets.push_back(text.substr(44));
    }
    REQUIRE(secrets.size() == 2 + 2 * 6);
    for (const auto& row :
         connection->run("SELECT encode(secret, 'hex'), encode(secret, 'base64') FROM tokens")) {
      secrets.emplace_back(row[0].c_str());
      secrets.emplace_back(row[1].c_str());
    }
  }
};

/// All commands, with valid and invalid arguments.
std::vector<Arguments> commands(const SecretWorld& world) {
  const auto& token = world.token;
  auto forged = token;
  forged[50] = forged[50] == 'A' ? 'B' : 'A';
  return {{"config", "show"},
          {"config", "check"},
          {"status"},
          {"status", "-o", "json"},
          {"doctor"},
          {"migrate", "status"},
          {"verify", token},
          {"verify", "-o", "json", token},
          {"verify", "--offline", token},
          {"verify", world.recovery},
          {"verify", "--code", codes[0], world.recovery},
          {"verify", "--code", codes[0] + "1", world.recovery},
          {"verify", "--code", token, token},
          {"verify", forged},
          {"verify", token + "x"},
          {"verify", token, token},
          {token},
          {"verify", "--" + token},
          {"audit", token},
          {"audit", world.recovery},
          {"audit", "token:7"},
          {"audit", "user1"},
          {"audit", "--batches"},
          {"audit", token, token},
          {"audit", "batch:" + token},
          {"audit", "--account", token},
          {"tail", "-n", "100"},
          {"tail", "-o", "json"},
          {"tail", "--account", token},
          {"rewind-cursor", "--to-start", "--dry-run"},
          {"rewind-cursor", "--to-start", "-y", "--reason", "a test"},
          {"resend", "user1", "-y"},
          {"resend", token, "-y"},
          {"resend", token + "x", "-y"},
          {"revoke", token, "--dry-run"},
          {"revoke", "--key", token},
          {"rewind-cursor", "--to-id", token},
          {"suspend", "user5", "-y", "--reason", "a test"},
          {"suspend", "--undo", "user5", "-y"},
          {"suspend", token, "-y"},
          {"simulate", "--accounts", "2", "--seed", "7"},
          {"template", "check"},
          {"template", "render", "recovery", "--account", "user1"},
          {"template", "render", "recovery", "--message", "--account", "user1"},
          {"template", "render", "activation", "-o", "json", "--account", "user1"},
          {"template", "render", token},
          {"template", "render", "recovery", "--account", token},
          {"template", "check", "--templates", token},
          {"prune", "--dry-run"},
          {"prune", "--older-than", token},
          {"collect", "--once"},
          {"collect", "--once", "--format", "jsonl"},
          {"collect", "--batch-limit", token},
          {"collect", "--queue", token}};
}

}  // namespace

TEST_CASE("no command shows a secret, whatever the log's format and wherever the key is configured") {
  const SecretWorld world;
  const TemporaryDirectory directory;
  const std::vector<Variables> environment{
      {{"MAILROOM_LOG_FORMAT", "text"}, {"MAILROOM_SECRET_KEY", key}},
      {{"MAILROOM_LOG_FORMAT", "logfmt"}, {"MAILROOM_SECRET_KEY_FILE", directory.write("key", key + "\n")}},
      {{"MAILROOM_LOG_FORMAT", "json"},
       {"MAILROOM_CONFIG", directory.write("mailroom.yaml", "signing:\n  key: " + key + "\n")}}};
  for (auto more : environment) {
    more["MAILROOM_LOG_LEVEL"] = "debug";
    INFO(more.at("MAILROOM_LOG_FORMAT"));
    for (const auto& words : commands(world))
      world.check(words, more);
  }
}

TEST_CASE("a code is shown on request, and the search for secrets finds it there") {
  const SecretWorld world;
  const Variables more{{"MAILROOM_SECRET_KEY", key}};
  const auto run = world.mailroom({"verify", "--show-code", world.recovery}, more);
  CHECK(run.status == 0);
  CHECK(found_in(run.output, {}) != "");
  CHECK(found_in(run.errors, world.secrets) == "");
  CHECK(found_in(world.mailroom({"collect", "--once"}, more).output, world.secrets) == "");
  REQUIRE(world.mailroom({"rewind-cursor", "--to-start", "-y"}, more).status == 0);
  CHECK(found_in(world.mailroom({"collect", "--once"}, more).output, world.secrets) != "");
}

TEST_CASE("no malformed key and no password is shown") {
  const SecretWorld world;
  const TemporaryDirectory directory;
  // Both are nearly valid keys.
  const auto short_key = key.substr(1);
  const auto long_key = key + "g";
  const std::string url = "postgresql://somebody:" + password + "@127.0.0.1:1/nowhere";
  std::vector<Variables> wrong{
      {{"MAILROOM_SECRET_KEY", short_key}},
      {{"MAILROOM_SECRET_KEY", long_key}},
      {{"MAILROOM_SECRET_KEY_FILE", key}},
      {{"MAILROOM_SECRET_KEY_FILE", directory.write("short", short_key)}},
      {{"MAILROOM_SECRET_KEY_FILE", directory.write("long", long_key)}},
      {{"MAILROOM_SECRET_KEY_FILE", directory.write("open", key, 0644)}},
      {{"MAILROOM_CONFIG", directory.write("short.yaml", "signing:\n  key: " + short_key + "\n")}},
      {{"MAILROOM_CONFIG", directory.write("open.yaml", "signing:\n  key: " + key + "\n", 0644)}},
      {{"MAILROOM_CONFIG", directory.write("broken.yaml", "signing:\n  key: \"" + key + "\n")}},
      {{"MAILROOM_SECRET_KEY", key}, {"MAILROOM_PREVIOUS_SECRET_KEYS", short_key}}};
  for (const auto& target :
       {url, "host=/nowhere password=" + password, "password=" + password + " host",
        "postgresql://somebody:" + password + "@[nowhere", "postgresql://x?password=" + password + "&y=1",
        "host=127.0.0.1 port=1 password='" + password}) {
    wrong.push_back({{"MAILROOM_SECRET_KEY", key}, {"MAILROOM_DATABASE_URL", target}});
  }
  auto secrets = world.secrets;
  secrets.push_back(short_key);
  for (auto more : wrong) {
    more["MAILROOM_LOG_LEVEL"] = "debug";
    for (const Arguments& words : {Arguments{"collect", "--once"},
                                   {"verify", world.token},
                                   {"config", "show"},
                                   {"doctor"},
                                   {"status"}}) {
      const auto run = world.mailroom(words, more);
      INFO(words[0] << " with " << more.rbegin()->first << ", exit status " << run.status);
      CHECK(found_in(run.errors, secrets) == "");
      CHECK(found_in(run.output, secrets) == "");
    }
    const auto target = more.find("MAILROOM_DATABASE_URL");
    if (target != more.end()) world.check({"status", "--database-url", target->second}, {});
  }
}

TEST_CASE("the row of a violated constraint, with its secret, is not shown") {
  const SecretWorld world;
  world.connection->run("UPDATE tokens SET expires_at = created_at - 1");
  world.connection->run("ALTER TABLE tokens ADD CONSTRAINT short_lived CHECK (expires_at < created_at + 10)");
  const auto run = world.mailroom({"rewind-cursor", "--to-start", "--extend", "1h", "-y"}, {});
  CHECK(run.status == 1);
  CHECK(run.errors.find("short_lived") != std::string::npos);
  CHECK(found_in(run.errors + run.output, world.secrets) == "");
}

TEST_CASE("the key is not in the list of processes, and another process of the user cannot read it") {
  const TestDatabase database;
  const TemporaryDirectory directory;
  // Root owns everything of its own processes; run as another user, who needs access to the program.
  const std::string program = directory.path() / "mailroom";
  std::filesystem::copy_file(mailroom_binary, program);
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  Arguments words{program, "collect", "--wait", "60s"};
  if (geteuid() == 0)
    words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  Subprocess process(words, {{"MAILROOM_DATABASE_URL", "host=/nowhere"}, {"MAILROOM_SECRET_KEY", key}},
                     directory.path() / "stdout", directory.path() / "stderr");
  const auto files = std::filesystem::path("/proc") / std::to_string(process.pid());
  // The process has become mailroom when it writes its first log line.
  REQUIRE(eventually([&] { return !read_file(directory.path() / "stderr").empty(); }));
  const auto command = read_file(files / "cmdline");
  CHECK(command.find("collect") != std::string::npos);
  CHECK(found_in(command, {key}) == "");
  struct stat status {};
  REQUIRE(stat((files / "environ").c_str(), &status) == 0);
  CHECK(status.st_uid == 0);
  struct stat own {};
  REQUIRE(stat(files.c_str(), &own) == 0);
  CHECK(own.st_uid != 0);
}

}  // namespace mailroom::test::secrets_test
