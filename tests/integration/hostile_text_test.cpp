// Names, reasons and other text from untrusted sources: no command prints a character of it that controls a
// terminal, reverses text or is invisible.

#include "base/json.hpp"
#include "base/printable.hpp"
#include "support/catch.hpp"
#include "support/misleading_text.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::hostile_text_test {
namespace {

using Arguments = std::vector<std::string>;

/// All misleading characters between two letters.
std::string hostile() {
  std::string text = "x";
  for (const auto& character : misleading_characters())
    text += character;
  return text + "y";
}

/// The misleading characters that a collector does emit: those that are not ASCII control characters.
std::string hostile_beyond_ascii() {
  std::string text = "x";
  for (const auto& character : misleading_characters())
    text += character.size() > 1 ? character : "";
  return text + "y";
}

/// A database in which every free text is hostile. `text` is the text of operators and programs.
class HostileWorld {
 public:
  explicit HostileWorld(const std::string& text = hostile()) : connection(database.connect()) {
    insert_accounts(*connection, 3);
    const auto collector = attach(database);
    const auto reply = collector->claim({.limit = 1});
    collector->claim({.limit = 0, .receipt = claim::Receipt{*reply.lease, {.emitted = 1}}});
    const auto dead = collector->claim({.limit = 1});
    collector->claim({.limit = 1});
    connection->run("UPDATE mailroom_batches SET dead_at = clock_timestamp() WHERE id = $1",
                    dead.lease->batch);
    connection->run(
        "UPDATE mailroom_batches SET claimed_by = $1, earlier_attempts = "
        "jsonb_build_array(jsonb_build_object("
        "'attempt', 1, 'collector', 1, 'claimed_by', $1::text, 'claimed_at', clock_timestamp()))",
        text);
    // Rows that are older than the triggers may contain such text.
    connection->run("SET session_replication_role = replica");
    connection->run("UPDATE accounts SET email = $1 || id, login = $2 || id", "e" + hostile(),
                    "l" + hostile());
    connection->run("UPDATE accounts SET email = $1, login = $1 WHERE id = 3", hostile_beyond_ascii());
    connection->run("INSERT INTO jobs VALUES ($1, 0)", text.substr(0, 2000));
    connection->run("SELECT mailroom_attach($1)", text.substr(0, 2000));
    connection->run(
        "INSERT INTO mailroom_operations (kind, actor, db_user, reason, queue, account, details) "
        "SELECT kind, $1, left($1, 20), $1, $2, account, jsonb_build_object('ids', '{[1,3)}', 'replayed', 1, "
        "'until', $1::text, 'older_than', $1::text, 'after', $1::text, 'before', $1::text, $3::text, "
        "$1::text, "
        "'cursor_before', 2, 'cursor_after', 1, 'object', jsonb_build_object('key', $1::text), "
        "'list', jsonb_build_array($1::text, jsonb_build_object($3::text, $1::text))) "
        "FROM unnest('{rewind,replay,suspend,restore,prune}'::text[]) kind, unnest('{1,NULL}'::bigint[]) "
        "account",
        text, text.substr(0, 2000), hostile());
    connection->run(
        "INSERT INTO mailroom_deliveries (queue, token, state, batch, sink, code, reply, earlier_attempts) "
        "SELECT $2, t, 'unknown', 1, $1, 250, $1, jsonb_build_array(jsonb_build_object('at', now(), 'state', $3::text, "
        "'sink', $3::text, 'code', 450, 'reply', $3::text)) FROM unnest('{1,3}'::bigint[]) t",
        text, text.substr(0, 2000), hostile());
    connection->run(
        "UPDATE mailroom_schema_history SET actor = $1, reason = $1, name = $1, mailroom_version = $1", text);
    connection->run("RESET session_replication_role");
  }

  TestDatabase database;
  std::unique_ptr<db::Connection> connection;
};

/// Every command that prints data or repeats its arguments.
std::vector<Arguments> commands() {
  const auto name = hostile();
  const auto email = "e" + name + "1";
  return {{"status"},
          {"tail"},
          {"tail", "--mask"},
          {"tail", "--account", email},
          {"audit"},
          {"audit", "--batches"},
          {"audit", email},
          {"audit", "token:1"},
          {"audit", "token:2"},
          {"audit", "token:3"},
          {"audit", "batch:1"},
          {"audit", "batch:2"},
          {"audit", name},
          {"audit", "token:" + name},
          {"suspend", email},
          {"suspend", "--undo", email},
          {"suspend", name},
          {"prune", "--dry-run", "--older-than", "1ms"},
          {"prune"},
          {"prune", "--older-than", name},
          {"rewind-cursor", "--to-start", "--dry-run"},
          {"resend", email, "--dry-run"},
          {"rewind-cursor", "--to-start", "--reason", name},
          {"rewind-cursor", "--to-time", name},
          {"rewind-cursor", "--fix-sequence", "--dry-run"},
          {"migrate", "status"},
          {"migrate", "verify"},
          {"migrate", "goto", name},
          {"doctor"},
          {"doctor", "--channel", name},
          {"doctor", "--queue", name},
          {"config", "show"},
          {"config", "show", "--database-url", "host=" + name},
          {"config", "show", "--config", "/nowhere/" + name},
          {"config", "check", "--key-file", "/nowhere/" + name},
          {"verify", "--offline", name},
          {"status", "--queue", name},
          {"status", "--database-url", "dbname=" + name},
          {"status", "--database-url", "host=/nowhere/" + name},
          {"simulate", "--accounts", name},
          {"template", "render", "recovery", "--account", email},
          {"template", "render", "recovery", "--html", "--account", email},
          {"template", "render", "recovery", "--message", "--account", email},
          {"template", "render", "recovery", "--account", name},
          {"template", "render", name},
          {"template", "check", "--templates", "/nowhere/" + name},
          {"collect", "--once", "--format", "jsonl"},
          {"collect", "--format", name},
          {name},
          {"status", "--" + name},
          {"status", name}};
}

void check_output(const std::string& text) {
  const auto found = found_misleading(text);
  INFO("found " << ascii_json(nlohmann::json(found)));
  CHECK(found.empty());
  CHECK(is_utf8(text));
}

}  // namespace

TEST_CASE("no command prints a misleading character of the data") {
  const HostileWorld world;
  const OperatorRig rig(world.database);
  const Arguments log_formats{"text", "json", "logfmt"};
  std::size_t round = 0;
  for (const auto& words : commands()) {
    for (const std::string format : {"text", "json"}) {
      auto all = words;
      const auto& log_format = log_formats[round++ % log_formats.size()];
      all.insert(all.end(), {"-o", format, "--log-level", "debug", "--log-format", log_format});
      INFO(ascii_json(nlohmann::json(all)));
      const auto run = rig.mailroom(all);
      check_output(run.output);
      check_output(run.errors);
      CHECK(run.output.size() + run.errors.size() > 0);
      // The server accepts all of this; mailroom itself refuses what a command does not accept.
      CHECK(run.status != static_cast<int>(ExitCode::failed));
    }
  }
}

TEST_CASE("a collector's jsonl escapes misleading characters, and keeps the value") {
  const HostileWorld world;
  const auto run = OperatorRig(world.database).mailroom({"collect", "--once", "--format", "jsonl"});
  CHECK(run.status == 0);
  check_output(run.output);
  REQUIRE(count(run.output, "\n") == 1);
  const auto tokens = parse_json(run.output)["tokens"];
  REQUIRE(tokens.size() == 1);
  CHECK(tokens[0]["email"] == hostile_beyond_ascii());
  CHECK(tokens[0]["login"] == hostile_beyond_ascii());
}

TEST_CASE("text of twenty kilobytes is cut in text, and complete in JSON") {
  const std::string text(20'000, 'z');
  const HostileWorld world(text);
  const OperatorRig rig(world.database);
  for (const Arguments& words : std::vector<Arguments>{{"status"},
                                                       {"tail"},
                                                       {"audit"},
                                                       {"audit", "--batches"},
                                                       {"audit", "id:1"},
                                                       {"audit", "token:1"},
                                                       {"audit", "batch:1"}}) {
    INFO(plain_json(nlohmann::json(words)));
    const auto run = rig.mailroom(words);
    INFO(run.errors.substr(0, 2000));
    CHECK(run.output.find(std::string(500, 'z')) != std::string::npos);
    CHECK(run.output.find(std::string(1001, 'z')) == std::string::npos);
    CHECK(run.errors.find(std::string(1001, 'z')) == std::string::npos);
  }
  for (const Arguments& words : std::vector<Arguments>{{"tail", "-o", "json"}, {"audit", "-o", "json"}}) {
    const auto run = rig.mailroom(words);
    CHECK(run.output.find("\"actor\":\"" + text + "\"") != std::string::npos);
    CHECK(run.output.find("\"reason\":\"" + text + "\"") != std::string::npos);
  }
}

}  // namespace mailroom::test::hostile_text_test
