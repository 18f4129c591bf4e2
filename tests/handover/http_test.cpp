// `collect --to` an HTTP server as users run it. The server's own log is the judge.

#include <csignal>

#include "handover_rig.hpp"
#include "support/catch.hpp"
#include "webhook_process.hpp"

namespace mailroom::test::http_test {
namespace {

const std::string webhook_secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

std::unique_ptr<TestCollector> collect_to(HandoverRig& rig, const WebhookProcess& server,
                                          std::vector<std::string> options,
                                          const std::map<std::string, std::string>& environment = {}) {
  options.insert(options.begin(), {"--to", server.url()});
  return std::make_unique<TestCollector>(rig.database, options, environment);
}

}  // namespace

TEST_CASE("collect posts each token once, signed, and records the answer") {
  HandoverRig rig(205);
  WebhookProcess server("ok", {"--secret", webhook_secret});
  const auto secret = rig.directory.write("secret", webhook_secret + "\n");
  const auto collector =
      collect_to(rig, server, {"--once"}, {{"MAILROOM_SINK_SIGNING_SECRET_FILES", secret}});
  CHECK(status_of(*collector) == 0);
  INFO(collector->log());
  CHECK(each_once(taken_tokens(server.taken()), 205));
  CHECK(rig.count("accepted") == 205);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE code = 200 AND sink = "
                   "'127.0.0.1:" +
                       server.port() + "'") == 205);
  CHECK(collector->log().find(webhook_secret.substr(6)) == std::string::npos);
}

TEST_CASE("a server names the outcomes of tokens") {
  HandoverRig rig(20);
  WebhookProcess server("outcomes");
  CHECK(status_of(*collect_to(rig, server, {"--once"})) == 0);
  CHECK(rig.count("rejected") == 2);
  CHECK(rig.count("deferred") == 2);
  rig.due_now();
  CHECK(status_of(*collect_to(rig, server, {"--once"})) == 0);
  CHECK(rig.count("accepted") == 18);
  CHECK(each_once(taken_tokens(server.taken()), 18));
}

TEST_CASE("what a server may have taken without an answer comes again with the same id") {
  for (const std::string mode : {"half", "half-header", "drop", "late"}) {
    INFO(mode);
    HandoverRig rig(100);
    WebhookProcess server(mode);
    const auto collector = collect_to(rig, server, {"--once", "--ack-timeout", "2s"});
    CHECK(status_of(*collector) == 0);
    INFO(collector->log());
    CHECK(rig.count("accepted") == 100);
    CHECK(each_once(taken_tokens(server.taken(), true), 100));
    CHECK(taken_lines(server.taken()).size() == 20);
  }
}

TEST_CASE("a server that throttles gets a lower rate, and everything in the end") {
  HandoverRig rig(100);
  WebhookProcess server("throttle");
  const auto collector = collect_to(rig, server, {"--once"});
  CHECK(status_of(*collector) == 0);
  CHECK(rig.count("accepted") == 90);
  CHECK(rig.count("deferred") == 10);
  CHECK(collector->log().find("asks for a lower rate") != std::string::npos);
}

TEST_CASE("tokens wait while a server redirects or is away, and no attempt is counted") {
  HandoverRig rig(30);
  WebhookProcess server("redirect");
  const auto collector = collect_to(rig, server, {});
  CHECK(eventually([&] { return rig.count("deferred") == 30; }));
  CHECK(value<int>(*rig.connection, "SELECT sum(attempts) FROM mailroom_deliveries") == 0);
  CHECK(collector->stop() == 0);
  CHECK(taken_lines(server.taken()).empty());
}

TEST_CASE("collect --once to a server that is away ends with the exit status of an unavailable side") {
  HandoverRig rig(30);
  TestCollector collector(rig.database, {"--once", "--to", "http://127.0.0.1:1/"});
  CHECK(status_of(collector) == 4);
  INFO(collector.log());
  CHECK(count(collector.log(), "error: 127.0.0.1:1 is unavailable: ") == 1);
  CHECK(count(collector.log(), "; 30 tokens wait in the queue") == 1);
  CHECK(rig.count("deferred") == 30);
}

TEST_CASE("collectors that are killed post every token, and repeat only what was in flight") {
  HandoverRig rig(2000);
  WebhookProcess server("ok");
  const std::vector<std::string> options{"--batch-limit", "10", "--lines-per-claim", "5"};
  int kills = 0;
  for (int i = 1; i <= 10 && rig.count("accepted") < 2000; ++i) {
    const auto before = rig.count("accepted");
    const auto collector = collect_to(rig, server, options);
    CHECK(eventually([&] { return rig.count("accepted") > before + 50 * (i % 3); }));
    collector->process().signal(SIGKILL);
    collector->process().wait();
    ++kills;
  }
  auto last = options;
  last.emplace_back("--once");
  CHECK(eventually([&] {
    status_of(*collect_to(rig, server, last));
    return rig.count("accepted") == 2000;
  }));
  const auto taken = taken_tokens(server.taken());
  CHECK(taken.size() == 2000);
  int repeated = 0;
  for (const auto& [token, times] : taken)
    repeated += times - 1;
  CHECK(repeated <= kills * 50);
}

TEST_CASE("a server that is killed in between gets every token") {
  HandoverRig rig(60);
  WebhookProcess server("silent");
  const auto collector = collect_to(rig, server, {"--ack-timeout", "1m"});
  CHECK(eventually([&] { return taken_lines(server.taken()).size() == 6; }));
  server.kill();
  const auto before = taken_tokens(server.taken());
  CHECK(before.size() == 60);
  CHECK(collector->stop() == 0);
  INFO(collector->log());
  // Taken, and never answered: nothing of it is recorded as accepted.
  CHECK(rig.count("accepted") == 0);
  CHECK(rig.count("deferred") == 60);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_deliveries WHERE unknowns = 1") == 60);
}

}  // namespace mailroom::test::http_test
