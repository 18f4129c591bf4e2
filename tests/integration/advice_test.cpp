// The fixes that commands print, typed as printed: each fix helps, and none takes mail away.

#include <csignal>
#include <fmt/format.h>

#include "base/actor.hpp"
#include "base/pattern.hpp"
#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/operator_rig.hpp"
#include "support/terminal.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::advice_test {
namespace {

const std::map<std::int64_t, int> first_three{{1, 1}, {2, 1}, {3, 1}};

/// The only fix that a command's output names.
std::string only_fix(const FinishedRun& run) {
  const auto fixes = fixes_in(run.output);
  INFO(run.output << run.errors);
  REQUIRE(fixes.size() == 1);
  return fixes.front();
}

/// Undoes the wrapping.
std::string unwrapped(const std::string& text) {
  return Pattern("\n +").replaced(text, " ");
}

/// The command that the only hint of a command's output begins with.
std::string only_hint(const FinishedRun& run) {
  INFO(run.output << run.errors);
  const std::string label = "  hint: ";
  const auto at = run.output.find(label);
  REQUIRE(at != std::string::npos);
  REQUIRE(run.output.find(label, at + 1) == std::string::npos);
  const auto hint = unwrapped(run.output.substr(at + label.size()));
  return hint.substr(0, hint.find(" lists "));
}

/// The first fix of the doctor's checks of collectors.
std::string fix_of_doctor(const OperatorRig& rig) {
  const auto text = rig.mailroom({"doctor"}).output;
  const auto from = text.find("collectors  ");
  INFO(text);
  REQUIRE(from != std::string::npos);
  const auto fixes = fixes_in(text.substr(from));
  REQUIRE_FALSE(fixes.empty());
  return fixes.front();
}

bool all_acknowledged(db::Connection& connection) {
  return value<bool>(connection, "SELECT bool_and(emitted_at IS NOT NULL) FROM mailroom_batches");
}

}  // namespace

TEST_CASE("without a collector, the hint leads to its service and takes no token") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  rig.stub("systemctl");
  rig.stub("ssh");
  insert_accounts(*connection, 3);
  const auto status = rig.mailroom({"status"});
  CHECK(status.status == 8);
  CHECK(unwrapped(status.output).find("Start the collector's service") != std::string::npos);
  CHECK(fixes_in(status.output).empty());
  const auto hint = only_hint(status);
  CHECK(unwrapped(rig.mailroom({"doctor"}).output).find(hint) != std::string::npos);
  CHECK(rig.type(hint).status == 0);
  CHECK(rig.calls("systemctl") == "[list-unit-files][mailroom*]");
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_batches") == 0);

  const TestCollector service(database, {"--once", "--format", "jsonl"});
  CHECK(eventually([&] { return emitted_ids(service.output()) == first_three; }));
  REQUIRE(eventually([&] { return all_acknowledged(*connection); }));
  // The host of the last collector is known now, and may be another one.
  REQUIRE(eventually([&] { return rig.mailroom({"status"}).output.find("hint: ") != std::string::npos; }));
  CHECK(only_hint(rig.mailroom({"status"})) == hint);
  connection->run("UPDATE mailroom_batches SET claimed_by = 'mailroom collect@web9:77'");
  const auto elsewhere = rig.mailroom({"status"});
  CHECK(unwrapped(elsewhere.output).find("process 77 on web9") != std::string::npos);
  CHECK(rig.type(only_hint(elsewhere)).status == 0);
  CHECK(rig.calls("ssh") == "[web9][systemctl list-unit-files 'mailroom*']");
}

TEST_CASE("a limit that is exceeded prints no fix where there is none") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  insert_accounts(*connection, 3);
  connection->run("UPDATE tokens SET created_at = created_at - 60");
  const auto late = rig.mailroom({"status", "--max-lag", "1s", "--max-pending", "1"});
  CHECK(late.status == 8);
  CHECK(fixes_in(late.output).empty());
  CHECK(only_hint(late) == "systemctl list-unit-files 'mailroom*'");
}

TEST_CASE("a collector on a terminal asks before it takes tokens, since they count as emitted there") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()},
                                                       {"MAILROOM_SECRET_KEY", test_key}};
  const auto declined = run_in_terminal({mailroom_binary, "collect", "--once"}, environment, 200, "n\n");
  CHECK(declined.status == 7);
  CHECK(declined.output.find("take tokens of queue mailroom here, and mail nobody? [y/N]") !=
        std::string::npos);
  CHECK(declined.output.find("connecting") == std::string::npos);
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_batches") == 0);
  const auto run =
      OperatorRig(database).type(GENERATE("mailroom collect --once", "mailroom collect --once -y"));
  INFO(run.output);
  CHECK(run.status == 0);
  const auto warning = run.output.find("standard output is a terminal: tokens shown here count as emitted");
  REQUIRE(warning != std::string::npos);
  CHECK(warning < run.output.find("connecting"));
  CHECK(warning < run.output.find("1,user1@"));
  CHECK(value<int>(*connection, "SELECT sum(emitted) FROM mailroom_batches") == 1);
  // Not printed when a pipe reads the output.
  insert_accounts(*connection, 1, "next");
  CHECK(OperatorRig(database).mailroom({"collect", "--once"}).errors.find("terminal") == std::string::npos);
}

TEST_CASE("the only collector, stopped with a batch, resumes after the printed fix, and repeats nothing") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  const NamedPipe pipe;
  TestCollector collector(database.conninfo(), {"--batch-limit", "5000", "--format", "jsonl"}, {},
                          pipe.path());
  REQUIRE(collector.connected());
  insert_accounts(*connection, 1000);
  REQUIRE(eventually([&] { return pipe.is_full(); }));
  collector.process().signal(SIGSTOP);
  connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '5 minutes'");
  const auto status = rig.mailroom({"status"});
  CHECK(status.status == 8);
  const auto fix = only_fix(status);
  CHECK(fix == fmt::format("kill -CONT {}", collector.process().pid()));
  const auto process = fmt::format("process {} on {}", collector.process().pid(), host_name());
  CHECK(unwrapped(status.output).find(process) != std::string::npos);
  CHECK(fix_of_doctor(rig) == fix);

  std::string received;
  CHECK(rig.type(fix).status == 0);
  CHECK(eventually([&] {
    received += pipe.take(1 << 20);
    return received.ends_with('\n') && all_acknowledged(*connection);
  }));
  const auto emitted = emitted_ids(received);
  CHECK(emitted.size() == 1000);
  CHECK(std::all_of(emitted.begin(), emitted.end(), [](const auto& token) { return token.second == 1; }));
  CHECK(rig.mailroom({"status"}).status == 0);
  CHECK(collector.stop() == 0);
}

TEST_CASE("the fix for a stopped collector beside another one resumes it, so that nothing is emitted twice") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  const NamedPipe pipe;
  TestCollector stopped(database.conninfo(), {"--batch-limit", "5000", "--format", "jsonl"}, {}, pipe.path());
  REQUIRE(stopped.connected());
  insert_accounts(*connection, 1000);
  REQUIRE(eventually([&] { return pipe.is_full(); }));
  stopped.process().signal(SIGSTOP);
  connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '5 minutes'");
  TestCollector other(database, {"--batch-limit", "5000", "--format", "jsonl"});
  REQUIRE(other.connected());
  const auto fix = only_fix(rig.mailroom({"status"}));
  CHECK(fix_of_doctor(rig) == fix);
  CHECK(rig.type(fix).status == 0);
  std::string received;
  CHECK(eventually([&] {
    received += pipe.take(1 << 20);
    return received.ends_with('\n') && all_acknowledged(*connection);
  }));
  CHECK(emitted_ids(received).size() == 1000);
  CHECK(emitted_ids(other.output()).empty());
  CHECK(eventually([&] { return rig.mailroom({"status"}).status == 0; }));
}

}  // namespace mailroom::test::advice_test
