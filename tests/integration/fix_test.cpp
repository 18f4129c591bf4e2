// Every fix that a command prints is typed as printed, in the situation that it is printed for, and what it
// was printed for is gone. A kind of fix without a situation fails. Settings of the server are changed, so
// this runs alone on it.

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <future>

#include "health/queue_health.hpp"
#include "support/doctor_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/test_pooler.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::fix_test {
namespace {

/// A database, the commands that look at it, and an operator who types what they print.
struct Stage {
  explicit Stage(TestDatabase::Schema schema) : database(schema) {}
  ~Stage() {
    std::filesystem::current_path(start);
    run("ALTER SYSTEM RESET ALL");
    run("SELECT pg_reload_conf()");
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void run(const std::string& statements) const { database.connect()->run(statements); }

  /// The findings of doctor and of status that have a fix of this kind: its commands, in order.
  std::vector<std::string> fixes_of(status::FixKind kind) const {
    std::vector<std::string> commands;
    const auto add = [&](const status::Fix& fix) {
      if (!fix.empty() && fix.kind() == kind) commands.push_back(fix);
    };
    for (const auto& finding : doctor.examine()) {
      for (const auto& fix : finding.fix)
        add(fix);
    }
    if (!commands.empty() || !has_status) return commands;
    for (const auto& finding :
         health::judge_queue(status::read_queue_status(*database.connect(), "mailroom"), limits))
      add(finding.fix);
    return commands;
  }

  /// Types the commands in one shell, or in one psql. What they export, later looks have.
  void type(const std::vector<std::string>& commands) {
    std::string text;
    for (const auto& command : commands)
      text += command + "\n";
    INFO(text);
    if (commands.front().starts_with("mailroom ")) {
      const auto run = person.type(commands.front());
      INFO(run.output);
      CHECK(run.status == 0);
      return;
    }
    const bool is_sql = commands.front().ends_with(';');
    const auto run = is_sql
                         ? run_to_end({"/bin/sh", "-c",
                                       "printf %s \"$2\" | PGOPTIONS=-csearch_path=pg_catalog psql -XAtq -v "
                                       "ON_ERROR_STOP=1 -d \"$1\"",
                                       "sh", database.conninfo(), text},
                                      {{"PATH", std::getenv("PATH")}})
                         : run_to_end({"/bin/sh", "-euc", text + "env"}, {{"PATH", path}});
    INFO(run.output << run.errors);
    CHECK(run.status == 0);
    if (is_sql) return;
    for (const auto& line : lines_of(run.output)) {
      const auto at = line.find('=');
      if (line.starts_with("MAILROOM_") && !line.starts_with("MAILROOM_TEST"))
        doctor.environment[line.substr(0, at)] = line.substr(at + 1);
    }
  }

  TestDatabase database;
  DoctorRig doctor{database};
  OperatorRig person{database};
  TemporaryDirectory directory;
  std::filesystem::path start = std::filesystem::current_path();
  std::string path = std::getenv("PATH");
  health::HealthLimits limits{};
  bool has_status = true;
  std::vector<std::shared_ptr<void>> kept{};  ///< until the end of the test, the last first
  std::function<bool()> is_done{};            ///< if something else than the end of the finding is looked for
};

template <typename T>
T& keep(Stage& stage, std::shared_ptr<T> thing) {
  stage.kept.push_back(thing);
  return *thing;
}

db::Connection& keep_session(Stage& stage, const std::string& purpose) {
  return keep(stage, std::shared_ptr<db::Connection>(stage.database.connect(purpose)));
}

struct Situation {
  std::function<void(Stage&)> make;
  TestDatabase::Schema schema = TestDatabase::Schema::current;
};

void lock_the_queue(Stage& stage) {
  auto& careless = keep_session(stage, "psql");
  careless.run("BEGIN");
  careless.run("SELECT mailroom_lock_queue('mailroom')");
  stage.limits.lock_held = Milliseconds{0};
}

void hold_notifications(Stage& stage) {
  auto& listener = keep_session(stage, "forgotten");
  listener.run("LISTEN other");
  listener.run("BEGIN");
  listener.run("SELECT 1");
  // A little more than 1 % of 8 GB.
  stage.run(
      "DO $$ BEGIN FOR i IN 1..12000 LOOP PERFORM pg_notify('other', i || repeat('x', 7900)); END LOOP; END $$");
}

void prepare_a_transaction(Stage& stage) {
  stage.run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
  const auto session = attach(stage.database);
  const auto preparing = begin_insert(stage.database, 1, "prepared", "shop");
  preparing->run("PREPARE TRANSACTION 'of " + stage.database.name() + "'");
  insert_accounts(*stage.database.connect(), 1);
  CHECK(drain(*session).size() == 1);
  stage.limits.transaction_open = Milliseconds{0};
}

bool has_setting(const Stage& stage, const std::string& name, const std::string& wanted) {
  return eventually([&] {
    return value<std::string>(*stage.database.connect(), "SELECT current_setting('" + name + "')") == wanted;
  });
}

void lose_the_standby(Stage& stage) {
  stage.run("ALTER SYSTEM SET synchronous_standby_names = 'gone'");
  stage.run("SELECT pg_reload_conf()");
  REQUIRE(has_setting(stage, "synchronous_standby_names", "gone"));
  keep(stage, std::make_shared<std::future<void>>(std::async(
                  std::launch::async, [&stage] { insert_accounts(*stage.database.connect("signup"), 1); })));
  const auto connection = stage.database.connect();
  REQUIRE(eventually(
      [&] { return !connection->run("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'").empty(); }));
  stage.limits.lock_held = Milliseconds{0};
}

void stop_a_collector(Stage& stage) {
  auto& collector = keep(stage, std::make_shared<TestCollector>(
                                    stage.database, std::vector<std::string>{"--poll-interval", "100ms"}));
  REQUIRE(collector.connected());
  collector.process().signal(SIGSTOP);
  stage.limits.collector_silence = Milliseconds{1500};
}

void kill_a_batch(Stage& stage) {
  insert_accounts(*stage.database.connect(), 3);
  attach(stage.database)->claim({.limit = 10, .partial = true});
  stage.run("UPDATE mailroom_batches SET attempts = 20");
  const auto session = attach(stage.database);
  REQUIRE(eventually([&] { return session->claim({.limit = 10, .partial = true}).dead.has_value(); }));
}

void hide_rows(Stage& stage) {
  auto& role = keep(stage, std::make_shared<TestRole>(stage.database));
  stage.doctor.environment["MAILROOM_DATABASE_URL"] = role.conninfo();
  stage.type(stage.fixes_of(status::FixKind::grant));
  stage.run("ALTER TABLE tokens ENABLE ROW LEVEL SECURITY");
}

void set_the_clock_back(Stage& stage) {
  stage.person.stub("timedatectl");
  stage.path = stage.person.path();
  stage.doctor.now = [] { return std::chrono::system_clock::now() - std::chrono::hours(1); };
  stage.is_done = [&stage] { return stage.person.calls("timedatectl") == "[set-ntp][true]"; };
}

const char* const one_queue_for_activations =
    "SELECT mailroom_set_queue('mailroom', '{\"actions\": [\"activation\"]}', 'token_insert')";

Situation after(const std::string& statements) {
  return {[statements](Stage& stage) { stage.run(statements); }};
}

std::map<status::FixKind, Situation> situations() {
  using enum status::FixKind;
  constexpr auto none = TestDatabase::Schema::none;
  return {
      {end_session, {lock_the_queue}},
      {drain_notifications, {hold_notifications}},
      {rollback_prepared, {prepare_a_transaction}},
      {skip_standby, {lose_the_standby}},
      {continue_process, {stop_a_collector}},
      {resume_queue, {[](Stage& stage) { stage.type({"mailroom queue pause mailroom"}); }}},
      {create_queue, after(one_queue_for_activations)},
      {take_actions,
       after(
           std::string(one_queue_for_activations) +
           "; INSERT INTO jobs (job_type, last_seq) VALUES ('recovery', 0); SELECT mailroom_set_queue('recovery', '{\"actions\": [\"activation\"]}', 'token_insert')")},
      {replay_batch, {kill_a_batch}},
      {fix_sequence, {[](Stage& stage) {
         insert_accounts(*stage.database.connect(), 5);
         CHECK(drain(*attach(stage.database)).size() == 5);
         stage.run("SELECT setval('tokens_id_seq', 4)");
       }}},
      {order_ids, after("ALTER SEQUENCE tokens_id_seq CACHE 20")},
      {make_trigger, after("ALTER TABLE tokens DISABLE TRIGGER before_token_insert")},
      {fire_triggers, {[](Stage& stage) {
         stage.run("ALTER DATABASE " + stage.database.name() + " SET session_replication_role = replica");
       }}},
      {issue_tokens, {[](Stage& stage) {
         stage.run("ALTER TABLE accounts DISABLE TRIGGER after_account_insert");
         insert_accounts(*stage.database.connect(), 2);
         stage.run("ALTER TABLE accounts ENABLE TRIGGER after_account_insert");
         stage.run("ALTER TABLE mailroom_messages DISABLE TRIGGER after_message_insert");
         stage.run(
             "SELECT mailroom_send(ARRAY['ann@x.example', 'bob@x.example'], subject => 'Hello', text => 'Hello', "
             "send_after => t) FROM unnest('{null, 2099-01-01}'::timestamptz[]) t");
         stage.run("ALTER TABLE mailroom_messages ENABLE TRIGGER after_message_insert");
       }}},
      {make_object, after("DROP INDEX tokens_account_idx")},
      {pin_search_path, after("ALTER FUNCTION mailroom_batches_of RESET search_path")},
      {migrate, {[](Stage& stage) { stage.has_status = false; }, none}},
      {make_functions, after("DROP FUNCTION mailroom_update_gaps")},
      {force_version, after("UPDATE schema_migrations SET dirty = true")},
      {find_schema,
       {[](Stage& stage) {
          stage.has_status = false;
          stage.run("CREATE SCHEMA mail");
          db::Connection ours(stage.database.conninfo() + " options='-c search_path=mail,public'", "test");
          mailroom::test::migrate(ours);
        },
        none}},
      {grant, {[](Stage& stage) {
         stage.doctor.application_role = keep(stage, std::make_shared<TestRole>(stage.database)).name();
       }}},
      {revoke,
       {[](Stage& stage) {
          stage.run("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC");
          mailroom::test::migrate(*stage.database.connect());
          // As where the tables were used before mailroom came.
          stage.run("GRANT SELECT ON tokens TO PUBLIC");
        },
        none}},
      {show_rows, {hide_rows}},
      {reset_setting, {[](Stage& stage) {
         stage.run("ALTER DATABASE " + stage.database.name() + " SET default_transaction_read_only = on");
       }}},
      {protect_file, {[](Stage& stage) {
         stage.doctor.environment.erase("MAILROOM_SECRET_KEY");
         stage.doctor.environment["MAILROOM_SECRET_KEY_FILE"] =
             stage.directory.write("the key", std::string(32, 'a') + std::string(32, 'b'), 0644);
       }}},
      {make_key, {[](Stage& stage) {
         stage.doctor.environment.erase("MAILROOM_SECRET_KEY");
         std::filesystem::current_path(stage.directory.path());
       }}},
      {name_channel, {[](Stage& stage) { stage.doctor.environment["MAILROOM_CHANNEL_NAME"] = "elsewhere"; }}},
      {connect_directly, {[](Stage& stage) {
         auto& pooler = keep(stage, std::make_shared<TestPooler>(stage.database, "transaction"));
         stage.doctor.environment["MAILROOM_DATABASE_URL"] = pooler.conninfo();
       }}},
      {set_clock, {set_the_clock_back}},
  };
}

/// Those that a test beside the server that they are for types.
bool is_typed_elsewhere(status::FixKind kind) {
  return kind == status::FixKind::import_definitions;  // tests/broker/rabbitmq_special_test.cpp
}

/// Brings the situation about, types what is printed for it, and looks whether it is over.
void play(status::FixKind kind, const Situation& situation) {
  Stage stage(situation.schema);
  situation.make(stage);
  std::vector<std::string> printed;
  REQUIRE(eventually([&] { return !(printed = stage.fixes_of(kind)).empty(); }));
  stage.type(printed);
  CHECK(eventually([&] { return stage.is_done ? stage.is_done() : stage.fixes_of(kind).empty(); }));
}

}  // namespace

TEST_CASE("every fix that a command prints is a command that ends what it is printed for") {
  const auto all = situations();
  for (int i = 0; i <= static_cast<int>(status::last_fix_kind); ++i) {
    const auto kind = static_cast<status::FixKind>(i);
    if (is_typed_elsewhere(kind)) continue;
    DYNAMIC_SECTION("kind " << i) {
      REQUIRE(all.contains(kind));
      play(kind, all.at(kind));
    }
  }
}

}  // namespace mailroom::test::fix_test
