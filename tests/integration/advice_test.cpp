// What the commands advise, typed as it is printed: it helps, and takes no mail away.

#include <csignal>
#include <fmt/format.h>
#include <regex>

#include "base/who.hpp"
#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"

using namespace mailroom;
using namespace mailroom::test;

namespace {

const std::map<std::int64_t, int> first_three{{1, 1}, {2, 1}, {3, 1}};

/// The one thing that a command's output advises.
std::string only_mend(const FinishedRun& run) {
  const auto mends = mends_in(run.output);
  INFO(run.output << run.errors);
  REQUIRE(mends.size() == 1);
  return mends.front();
}

/// As it was before it was wrapped.
std::string unwrapped(const std::string& text) {
  return std::regex_replace(text, std::regex("\n +"), " ");
}

/// Of the checks of the doctor about collectors.
std::string mend_of_doctor(const OperatorRig& rig) {
  const auto text = rig.mailroom({"doctor"}).output;
  const auto from = text.find("collectors  ");
  INFO(text);
  REQUIRE(from != std::string::npos);
  const auto mends = mends_in(text.substr(from));
  REQUIRE_FALSE(mends.empty());
  return mends.front();
}

bool all_acknowledged(Connection& connection) {
  return value<bool>(connection, "SELECT bool_and(emitted_at IS NOT NULL) FROM mailroom_batches");
}

}  // namespace

TEST_CASE("where no collector is connected, what is advised leads to its service and takes no token") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  rig.stub("systemctl");
  rig.stub("ssh");
  insert_accounts(*connection, 3);
  const auto status = rig.mailroom({"status"});
  CHECK(status.status == 8);
  CHECK(unwrapped(status.output).find("Start the collector's service") != std::string::npos);
  const auto mend = only_mend(status);
  CHECK(mend_of_doctor(rig) == mend);
  CHECK(rig.type(mend).status == 0);
  CHECK(rig.calls("systemctl") == "[list-unit-files][mailroom*]");
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_batches") == 0);

  const TestCollector service(database, {"--once", "--format", "jsonl"});
  CHECK(eventually([&] { return emitted_ids(service.output()) == first_three; }));
  REQUIRE(eventually([&] { return all_acknowledged(*connection); }));
  // Where the last one ran is known by now, and may be elsewhere.
  REQUIRE(eventually([&] { return mends_in(rig.mailroom({"status"}).output).size() == 1; }));
  CHECK(only_mend(rig.mailroom({"status"})) == mend);
  connection->run("UPDATE mailroom_batches SET claimed_by = 'mailroom collect@web9:77'");
  const auto elsewhere = rig.mailroom({"status"});
  CHECK(unwrapped(elsewhere.output).find("process 77 on web9") != std::string::npos);
  CHECK(rig.type(only_mend(elsewhere)).status == 0);
  CHECK(rig.calls("ssh") == "[web9][systemctl list-unit-files 'mailroom*']");
}

TEST_CASE("a limit that is exceeded advises no collector at the terminal either") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  rig.stub("systemctl");
  insert_accounts(*connection, 3);
  connection->run("UPDATE tokens SET created_at = created_at - 60");
  const auto mends = mends_in(rig.mailroom({"status", "--max-lag", "1s", "--max-pending", "1"}).output);
  REQUIRE(mends.size() == 3);
  for (const auto& mend : mends)
    CHECK(rig.type(mend).status == 0);
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_batches") == 0);
}

TEST_CASE("a collector on a terminal says first that what appears there counts as emitted") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  const auto run = OperatorRig(database).type("mailroom collect --once");
  INFO(run.output);
  CHECK(run.status == 0);
  const auto warning = run.output.find("standard output is a terminal: what appears here counts as emitted");
  REQUIRE(warning != std::string::npos);
  CHECK(warning < run.output.find("connecting"));
  CHECK(warning < run.output.find("1,user1@"));
  CHECK(value<int>(*connection, "SELECT sum(emitted) FROM mailroom_batches") == 1);
  // Not where a sender reads.
  insert_accounts(*connection, 1, "next");
  CHECK(OperatorRig(database).mailroom({"collect", "--once"}).errors.find("terminal") == std::string::npos);
}

TEST_CASE("the only collector, stopped with a batch, goes on by what is advised, and repeats nothing") {
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
  const auto mend = only_mend(status);
  CHECK(mend == fmt::format("kill -CONT {}", collector.process().pid()));
  const auto process = fmt::format("process {} on {}", collector.process().pid(), host_name());
  CHECK(unwrapped(status.output).find(process) != std::string::npos);
  CHECK(mend_of_doctor(rig) == mend);

  std::string received;
  CHECK(rig.type(mend).status == 0);
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

TEST_CASE("a stopped collector beside another is freed of its batch, which the other takes over") {
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
  const auto mend = only_mend(rig.mailroom({"status"}));
  CHECK(mend_of_doctor(rig) == mend);
  CHECK(rig.type(mend).status == 0);
  CHECK(eventually([&] { return emitted_ids(other.output()).size() == 1000; }));
  CHECK(eventually([&] { return rig.mailroom({"status"}).status == 0; }));
}
