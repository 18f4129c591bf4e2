// How the doctor judges facts, and how it prints findings.

#include <fmt/format.h>

#include "cmd/doctor/doctor_report.hpp"
#include "db/pooler.hpp"
#include "doctor/subject.hpp"
#include "schema/schema_objects.hpp"
#include "support/catch.hpp"

namespace mailroom::test::doctor_test {

using namespace std::chrono_literals;

namespace {

doctor::Finding named(const std::string& check, doctor::Finding finding) {
  finding.check = check;
  return finding;
}

}  // namespace

TEST_CASE("the exit code of findings is that of the problem to fix first") {
  const auto bad_key = named("key", doctor::failure("no key", {}));
  const auto bad_previous = named("previous keys", doctor::failure("no key", {}));
  const auto bad_file = named("configuration", doctor::failure("no file", {}));
  const auto no_database = named("database", doctor::failure("gone", {}));
  const auto no_trigger = named("triggers", doctor::failure("disabled", {}));
  const auto slow = named("drift", doctor::warning("slow", {}));
  const auto skipped_ids = named("database", doctor::not_checked("no idea"));
  CHECK(doctor::judge(doctor::Findings{}) == ExitCode::done);
  CHECK(doctor::judge({named("key", doctor::fine("there")), slow, skipped_ids}) == ExitCode::done);
  CHECK(doctor::judge({slow, no_trigger}) == ExitCode::unusable);
  CHECK(doctor::judge({no_trigger, no_database}) == ExitCode::database);
  CHECK(doctor::judge({no_database, no_trigger, bad_key}) == ExitCode::configuration);
  CHECK(doctor::judge({bad_previous}) == ExitCode::configuration);
  CHECK(doctor::judge({bad_file, no_database}) == ExitCode::configuration);
}

TEST_CASE("a pooler is detected by pids that differ within one session") {
  const auto judge_pids = [](int announced, int first, std::optional<int> other, int again,
                             bool allows_transactions = true) {
    return db::judge_pooler({.announced = announced,
                             .first = first,
                             .other = other,
                             .again = again,
                             .allows_transactions = allows_transactions});
  };
  CHECK(judge_pids(7, 7, {}, 7) == db::PoolerKind::none);
  // Each session has its own process, but not the announced one.
  CHECK(judge_pids(7, 20, 21, 20) == db::PoolerKind::session);
  // The second connection got no process: all are in use, because each session keeps its own.
  CHECK(judge_pids(7, 20, {}, 20) == db::PoolerKind::session);
  // The second connection got the first one's process.
  CHECK(judge_pids(7, 20, 20, 20) == db::PoolerKind::transaction);
  // The first connection got another process afterwards.
  CHECK(judge_pids(7, 20, 21, 22) == db::PoolerKind::transaction);
  CHECK(judge_pids(7, 20, 20, 20, false) == db::PoolerKind::statement);
}

TEST_CASE("clocks may differ by two seconds plus half of the round trip") {
  CHECK(doctor::judge_clock(2000ms, 0ms).verdict == doctor::CheckVerdict::ok);
  CHECK(doctor::judge_clock(-2000ms, 0ms).verdict == doctor::CheckVerdict::ok);
  CHECK(doctor::judge_clock(2001ms, 0ms).verdict == doctor::CheckVerdict::warning);
  CHECK(doctor::judge_clock(2499ms, 1000ms).verdict == doctor::CheckVerdict::ok);
  CHECK(doctor::judge_clock(-2501ms, 1000ms).verdict == doctor::CheckVerdict::warning);
  CHECK(doctor::judge_clock(-90000ms, 0ms)
            .reason.starts_with("the server's clock is 1m30s behind this host's"));
  CHECK(doctor::judge_clock(90000ms, 0ms)
            .reason.starts_with("the server's clock is 1m30s ahead of this host's"));
}

TEST_CASE("a server that is too old or a standby is a failure, another encoding is a warning") {
  const doctor::ServerFacts good{.version = 150004,
                                 .version_text = "15.4",
                                 .in_recovery = false,
                                 .encoding = "UTF8",
                                 .target = "host=db"};
  const auto verdict = [](const doctor::ServerFacts& facts) {
    return doctor::judge_server(facts).front().verdict;
  };
  CHECK(doctor::judge_server(good).front().reason == "PostgreSQL 15.4 at host=db");
  CHECK(verdict(good) == doctor::CheckVerdict::ok);
  auto facts = good;
  facts.version = 140000;
  CHECK(verdict(facts) == doctor::CheckVerdict::ok);
  facts.version = 139999;
  CHECK(verdict(facts) == doctor::CheckVerdict::failure);
  facts = good;
  facts.in_recovery = true;
  CHECK(verdict(facts) == doctor::CheckVerdict::failure);
  facts = good;
  facts.encoding = "SQL_ASCII";
  CHECK(verdict(facts) == doctor::CheckVerdict::warning);
}

TEST_CASE("the channels of a function are read from its source") {
  using Channels = std::vector<std::string>;
  CHECK(doctor::notified_channels("BEGIN NOTIFY token_insert; RETURN NULL; END") == Channels{"token_insert"});
  CHECK(doctor::notified_channels("notify Token_Insert, 'x';") == Channels{"token_insert"});
  CHECK(doctor::notified_channels("NOTIFY \"Token Insert\";") == Channels{"Token Insert"});
  CHECK(doctor::notified_channels("PERFORM pg_notify('Mixed', NEW.id::text);") == Channels{"Mixed"});
  CHECK(doctor::notified_channels("NOTIFY one; PERFORM pg_notify( 'two', ''); NOTIFY one;") ==
        Channels{"one", "two"});
  CHECK(doctor::notified_channels("-- NOTIFY commented\n/* NOTIFY out */ RETURN NULL;").empty());
  CHECK(doctor::notified_channels("PERFORM pg_notify(v_channel, '');").empty());
  CHECK(doctor::notified_channels("").empty());
}

TEST_CASE("what migrations create is read from their text") {
  const auto objects = schema::read_expected_objects(
      {{0, "init",
        "CREATE TABLE t (\n    id int PRIMARY KEY,\n    name varchar(9) UNIQUE NOT NULL, -- a, b\n"
        "    kind text CHECK (kind IN ('a', 'b')),\n\n    FOREIGN KEY (id) REFERENCES u (id)\n);\n"
        "CREATE TRIGGER a BEFORE INSERT ON t\n    EXECUTE FUNCTION f();\nCREATE INDEX t_idx ON t (kind, id);\n",
        ""},
       {1, "more",
        "-- again\nDROP TRIGGER a ON t;\nCREATE TRIGGER a AFTER INSERT ON t\n    EXECUTE FUNCTION f();\n",
        ""},
       {2, "other",
        "-- x\nCREATE TRIGGER ab BEFORE INSERT ON t EXECUTE FUNCTION f();\n"
        "CREATE OR REPLACE FUNCTION f() RETURNS trigger;\n",
        ""},
       {3, "alone",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS t_name_idx ON t USING brin (name)\n  WITH (a = 1);\n", ""}});
  std::string text;
  for (const auto& [key, object] : objects) {
    text += fmt::format("{} {}, {}, {}: {}\n", schema::object_kind_word(key.kind), key.name, object.table,
                        object.migration, object.statement);
  }
  CHECK(text ==
        "table t, , 0_init: \n"
        "column t.id, t, 0_init: \n"
        "column t.kind, t, 0_init: \n"
        "column t.name, t, 0_init: \n"
        "constraint t_name_key, t, 0_init: ALTER TABLE @.t ADD CONSTRAINT t_name_key UNIQUE (name);\n"
        "constraint t_pkey, t, 0_init: ALTER TABLE @.t ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n"
        "index t_idx, t, 0_init: CREATE INDEX CONCURRENTLY t_idx ON @.t (kind, id);\n"
        "index t_name_idx, t, 3_alone: CREATE INDEX CONCURRENTLY IF NOT EXISTS t_name_idx ON @.t USING brin "
        "(name) WITH (a = 1);\n"
        "trigger a, , 1_more: CREATE TRIGGER a AFTER INSERT ON @.t EXECUTE FUNCTION @.f();\n"
        "trigger ab, , 2_other: CREATE TRIGGER ab BEFORE INSERT ON @.t EXECUTE FUNCTION @.f();\n"
        "function f, , 2_other: \n");
}

TEST_CASE("a finding is wrapped at 80 columns, a command is not") {
  const std::string command = "GRANT SELECT ON " + std::string(80, 'x') + " TO app;";
  const doctor::Findings findings{
      named("key", doctor::fine("055212ecd17fcea2 from mailroom.key")),
      named("privileges",
            doctor::failure("app lacks what collect needs on accounts, jobs, mailroom_batches and tokens",
                            {{status::FixKind::grant, command}},
                            "the owner of the tables, or a superuser, can grant what is missing")),
      named("triggers", doctor::not_checked("the schema is not current"))};
  CHECK(cmd::render_text(findings, {}) ==
        "ok           key         055212ecd17fcea2 from mailroom.key\n"
        "failure      privileges  app lacks what collect needs on accounts, jobs,\n"
        "                         mailroom_batches and tokens\n"
        "             hint: the owner of the tables, or a superuser, can grant what is\n"
        "                   missing\n"
        "             fix: " +
            command +
            "\n"
            "not checked  triggers    the schema is not current\n"
            "1 ok, 1 failure, 1 not checked\n");
}

TEST_CASE("on a terminal verdicts are coloured, and columns stay aligned") {
  const doctor::Findings findings{named("key", doctor::fine("there")),
                                  named("drift", doctor::warning("slow", {}))};
  CHECK(cmd::render_text(findings, {.colour = true}) ==
        "\x1b[32mok\x1b[0m       key    there\n"
        "\x1b[33mwarning\x1b[0m  drift  slow\n"
        "1 ok, 1 warning\n");
}

TEST_CASE("findings in JSON are one object") {
  const doctor::Findings findings{
      named("drift",
            doctor::warning("slow", {{status::FixKind::make_object, "CREATE INDEX i;"}}, "at night")),
      named("queue", doctor::not_checked("no database"))};
  CHECK(cmd::render_json(findings) ==
        R"({"checks":[{"name":"drift","verdict":"warning","reason":"slow","hint":"at night",)"
        R"("fix":["CREATE INDEX i;"]},{"name":"queue","verdict":"not checked","reason":"no database",)"
        R"("hint":"","fix":[]}],"ok":0,"warnings":1,"failures":0,"not_checked":1})"
        "\n");
}

}  // namespace mailroom::test::doctor_test
