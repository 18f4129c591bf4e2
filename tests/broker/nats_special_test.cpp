// Servers that let users in by JWTs, whose disk is full, that write before they acknowledge, or that
// acknowledge what they have not stored.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

#include "broker/killed_collectors.hpp"
#include "broker/nats_rig.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::nats_special_test {

using namespace std::chrono_literals;

namespace {

/// A running lying_nats.py.
class LyingServer {
 public:
  explicit LyingServer(const std::string& mode = {}) {
    std::vector<std::string> command{source_directory + "/tests/broker/lying_nats.py", log()};
    if (!mode.empty()) command.push_back(mode);
    process_ = std::make_unique<Subprocess>(command, std::map<std::string, std::string>{}, output(),
                                            directory_.path() / "errors");
    const bool listens = eventually([&] { return read_file(output()).find('\n') != std::string::npos; });
    if (!listens) throw std::runtime_error("no server: " + read_file(directory_.path() / "errors"));
  }

  std::string url() const {
    const auto port = read_file(output());
    return "nats://127.0.0.1:" + port.substr(0, port.find('\n'));
  }
  /// How often each message id came.
  std::map<std::string, int> came() const {
    std::map<std::string, int> ids;
    std::istringstream lines(read_file(log()));
    for (std::string id; std::getline(lines, id);)
      ++ids[id];
    return ids;
  }

 private:
  std::string log() const { return directory_.path() / "came"; }
  std::string output() const { return directory_.path() / "port"; }

  TemporaryDirectory directory_;
  std::unique_ptr<Subprocess> process_;
};

std::string cluster_file(const std::string& name) {
  return from_script("MAILROOM_TEST_NATS_DIRECTORY") + "/" + name;
}

}  // namespace

TEST_CASE("an acknowledgement with sequence 0 is none, and the line is repeated with its id", "[special]") {
  const LyingServer server;
  auto settings = nats_settings();
  settings.sink.to = server.url();
  std::ostringstream text;
  Log log{Log::Options{}, text};
  const auto carrier = nats::make_nats_carrier({settings, log, 1});
  auto lines = make_lines(20);
  hand_over(*carrier, lines);
  for (const auto& line : lines) {
    REQUIRE(line.answers.size() == 2);
    CHECK(line.answers.at(0).verdict == delivery::Verdict::unknown);
    CHECK(line.answers.at(0).reply ==
          "JetStream acknowledged with sequence 0, so it may not have stored the line");
    CHECK(line.answers[1].verdict == delivery::Verdict::accepted);
  }
}

TEST_CASE("collect counts no token as accepted that a server acknowledged with sequence 0", "[special]") {
  const LyingServer server;
  HandedOver handed(server.url(), {});
  insert_accounts(*handed.database.connect(), 25);
  CHECK(handed.collect_once() == "");
  CHECK(handed.accepted() == 25);
  const auto came = server.came();
  CHECK(came.size() == 3);
  for (const auto& [id, times] : came)
    CHECK(times == 2);

  const LyingServer liar("always");
  HandedOver held(liar.url(), {{"MAILROOM_SINK_WHEN_UNKNOWN", "hold"}});
  insert_accounts(*held.database.connect(), 5);
  CHECK(held.collect_once().empty());
  CHECK(held.accepted() == 0);
  CHECK(value<int>(*held.database.connect(),
                   "SELECT count(*) FROM mailroom_deliveries WHERE state = 'unknown' AND reply LIKE "
                   "'JetStream acknowledged with sequence 0%'") == 5);
}

TEST_CASE("lines go to servers that let a user in by a JWT", "[credentials]") {
  NatsRig rig;
  rig.settings.sink.credentials_file = from_script("MAILROOM_TEST_NATS_CREDENTIALS");
  // The next server wants the signature of another nonce.
  hand_over_to_two_servers(rig);
  rig.nodes.restore();
  rig.reader.await_stream();
  const auto findings = nats::check_nats(rig.settings);
  for (const auto& finding : findings)
    CHECK(finding.level != carriers::SinkFinding::Level::failure);
}

TEST_CASE("credentials that the servers do not know, none, and a file that is no credentials file",
          "[credentials]") {
  NatsRig rig;
  const std::string hint = "check the user in sink.to, and sink.password_file or sink.credentials_file";
  rig.settings.sink.credentials_file = cluster_file("stranger.creds");
  CHECK(lacking(refusal_of([&] { rig.carrier(); }),
                {"does not let mailroom in: Authorization Violation", hint}) == std::vector<std::string>());
  rig.settings.sink.credentials_file.clear();
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"does not let mailroom in", hint}) ==
        std::vector<std::string>());
  const TemporaryDirectory directory;
  rig.settings.sink.credentials_file = directory.path() / "notes";
  std::ofstream(rig.settings.sink.credentials_file) << "no JWT\n";
  chmod(rig.settings.sink.credentials_file.c_str(), 0600);
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"/notes has no line BEGIN NATS USER JWT",
                                                     "a JWT and a seed"}) == std::vector<std::string>());
  rig.settings.sink.credentials_file = cluster_file("none.creds");
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"none.creds", "sink.credentials_file"}) ==
        std::vector<std::string>());
}

TEST_CASE("servers with full disks make lines wait; restarted with room, they have each line once",
          "[disk]") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  auto before = make_lines(100);
  hand_over(*carrier, before);
  for (const int node : {1, 2, 3})
    fill_disk(cluster_file(fmt::format("data{}", node)));
  auto lines = make_lines(2000, 10, "full.");
  std::vector<carriers::SinkFinding> findings;
  Answered answered;
  {
    const Fault relief([&] { return answered.waiting > 0; },
                       [&] {
                         findings = nats::check_nats(rig.settings);
                         for (const int node : {1, 2, 3}) {
                           rig.nodes.kill(node);
                           std::remove(cluster_file(fmt::format("data{}/ballast", node)).c_str());
                         }
                         rig.nodes.restore();
                       });
    hand_over(*carrier, lines, &answered);
  }
  CHECK(std::ranges::none_of(lines, &TestLine::rejected));
  CHECK(std::ranges::any_of(
      findings, [](const auto& each) { return each.level != carriers::SinkFinding::Level::fine; }));
  lines.insert(lines.end(), before.begin(), before.end());
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("doctor sees whether servers write to disk before they acknowledge, if all of them show it",
          "[sync]") {
  NatsRig rig;
  const bool is_always = from_script("MAILROOM_TEST_NATS_SYNC") == "always";
  const auto worth = [&](const std::string& monitor) {
    rig.settings.sink.monitor = monitor;
    return nats::check_nats(rig.settings).back().reason;
  };
  const auto monitors = from_script("MAILROOM_TEST_NATS_MONITOR");
  const std::string on_disk =
      "an acknowledgement means that a majority of the replicas has the batch on disk";
  const auto one = worth(monitors.substr(0, monitors.find(',')));
  if (is_always) {
    CHECK(worth(monitors) == on_disk);
    CHECK(one ==
          on_disk +
              ", if sync_interval is always on all servers: it is on the 1 of 3 that sink.monitor names");
  } else {
    CHECK(lacking(worth(monitors), {"in memory, not on disk: up to 2m later"}) == std::vector<std::string>());
    CHECK(lacking(one, {"in memory, not on disk: up to 2m later"}) == std::vector<std::string>());
  }
  CHECK(lacking(worth(""), {"has the batch in memory"}) == std::vector<std::string>());

  // A client's port shows nothing.
  const auto wrong = "http://" + rig.settings.sink.to.substr(7, rig.settings.sink.to.find(',') - 7);
  CHECK(lacking(worth(wrong), {"has the batch in memory"}) == std::vector<std::string>());
  const auto findings = nats::check_nats(rig.settings);
  const auto& unseen = findings[findings.size() - 2];
  CHECK(unseen.level == carriers::SinkFinding::Level::warning);
  CHECK(unseen.reason == wrong.substr(7) + ", of sink.monitor, does not show how JetStream is set");
}

}  // namespace mailroom::test::nats_special_test
