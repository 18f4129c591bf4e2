// `collect --exec` as users run it: a real database, and a program that behaves as each test says. The
// program's own log is the judge.

#include <csignal>

#include "base/actor.hpp"
#include "handover_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test::exec_test {

TEST_CASE("collect hands each token over to a program once, and records it") {
  HandoverRig rig(205);
  const auto collector = rig.collect("ok", {"--once"});
  CHECK(status_of(*collector) == 0);
  INFO(collector->log());
  CHECK(each_once(taken_tokens(rig.taken), 205));
  CHECK(rig.count("accepted") == 205);
  CHECK(collector->output().empty());
  // One claim takes as many lines as may be in flight.
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches") == 1);
  CHECK(taken_lines(rig.taken).size() == 21);
  CHECK(value<int>(
            *rig.connection,
            "SELECT count(*) FROM mailroom_deliveries WHERE sink LIKE 'python3@%' AND reply = 'taken'") ==
        205);
}

TEST_CASE("a program may answer on its stdout") {
  HandoverRig rig(30);
  TestCollector collector(
      rig.database, {"--once", "--ack-on", "stdout", "--exec", child_command(rig.taken, "ok") + " stdout"});
  CHECK(status_of(collector) == 0);
  CHECK(each_once(taken_tokens(rig.taken), 30));
  CHECK(collector.output().empty());
}

TEST_CASE("a program rejects tokens and asks for a retry, and the others are accepted") {
  HandoverRig rig(20);
  CHECK(status_of(*rig.collect("fail", {"--once"})) == 0);
  CHECK(rig.count("rejected") == 2);
  CHECK(rig.count("deferred") == 2);
  CHECK(rig.count("accepted") == 16);
  CHECK(value<std::string>(*rig.connection, "SELECT reply FROM mailroom_deliveries WHERE token = 13") ==
        "no such mailbox");
  rig.due_now();
  CHECK(status_of(*rig.collect("fail", {"--once"})) == 0);
  CHECK(rig.count("accepted") == 18);
  CHECK(each_once(taken_tokens(rig.taken), 18));
}

TEST_CASE("what a program has not acknowledged when it dies comes again with the attempt named") {
  for (const std::string mode : {"die-after-take", "die-after-read", "close"}) {
    INFO(mode);
    HandoverRig rig(100);
    const auto collector = rig.collect(mode, {"--once"});
    CHECK(status_of(*collector) == 0);
    INFO(collector->log());
    CHECK(rig.count("accepted") == 100);
    CHECK(each_once(taken_tokens(rig.taken, true), 100));
    if (mode != "die-after-take") continue;
    const auto lines = taken_lines(rig.taken);
    CHECK(lines.size() == 11);
    int repeated = 0;
    for (const auto& line : lines)
      repeated += line.attempt > 1 && line.message_id == lines[2].message_id ? 1 : 0;
    CHECK(repeated == 1);
  }
}

TEST_CASE("tokens wait in the queue while the program does not start, and no attempt is counted") {
  HandoverRig rig(30);
  const auto collector = rig.collect("exit-at-start");
  CHECK(eventually([&] { return collector->log().find("the sink is unavailable") != std::string::npos; }));
  CHECK(eventually([&] { return rig.count("deferred") == 30; }));
  CHECK(value<int>(*rig.connection, "SELECT sum(attempts) FROM mailroom_deliveries") == 0);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_sinks WHERE name LIKE 'python3@%' AND failures > 0") == 1);
  CHECK(collector->stop() == 0);
  CHECK(taken_lines(rig.taken).empty());
  rig.due_now();
  rig.forget_sinks();
  CHECK(status_of(*rig.collect("ok", {"--once"})) == 0);
  CHECK(each_once(taken_tokens(rig.taken), 30));
}

TEST_CASE("a collector that is stopped waits for the answers of its program") {
  HandoverRig rig(200);
  const auto collector = rig.collect("ok", {"--batch-limit", "1"});
  CHECK(eventually([&] { return !taken_lines(rig.taken).empty(); }));
  CHECK(collector->stop() == 0);
  const auto taken = taken_tokens(rig.taken);
  CHECK(rig.count("accepted") == static_cast<int>(taken.size()));
  CHECK(each_once(taken, static_cast<int>(taken.size())));
}

TEST_CASE("a program that hangs when the collector is stopped is ended, and its tokens go back") {
  HandoverRig rig(20);
  const auto collector = rig.collect("hang");
  CHECK(eventually([&] { return read_file(rig.taken) == "start\n"; }));
  CHECK(collector->connected());
  collector->process().signal(SIGTERM);
  CHECK(collector->process().wait() == 0);
  INFO(collector->log());
  CHECK(count(collector->log(),
              "stopping: waiting for the answers of python3@" + host_name() + "; signal again") == 1);
  CHECK(rig.count("deferred") == 20);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL") == 0);
}

TEST_CASE("with hold a token that may have been taken is not handed over again") {
  HandoverRig rig(30);
  TestCollector collector(rig.database, {"--once", "--exec", child_command(rig.taken, "die-after-take")},
                          {{"MAILROOM_SINK_WHEN_UNKNOWN", "hold"}});
  CHECK(status_of(collector) == 0);
  CHECK(rig.count("unknown") >= 10);
  CHECK(rig.count("unknown") + rig.count("accepted") == 30);
  CHECK(each_once(taken_tokens(rig.taken), 30));
}

TEST_CASE("collectors that are killed hand every token over, and repeat only what was in flight") {
  HandoverRig rig(3000);
  const std::vector<std::string> options{"--batch-limit", "10", "--lines-per-claim", "5"};
  int kills = 0;
  for (int i = 1; i <= 15 && rig.count("accepted") < 3000; ++i) {
    const auto before = rig.count("accepted");
    const auto collector = rig.collect("ok", options);
    CHECK(eventually([&] { return rig.count("accepted") > before + 50 * (i % 3); }));
    collector->process().signal(SIGKILL);
    collector->process().wait();
    ++kills;
  }
  CHECK(kills > 5);
  auto last = options;
  last.emplace_back("--once");
  CHECK(eventually([&] {
    status_of(*rig.collect("ok", last));
    return rig.count("accepted") == 3000;
  }));
  const auto taken = taken_tokens(rig.taken);
  CHECK(taken.size() == 3000);
  int repeated = 0;
  for (const auto& [token, times] : taken)
    repeated += times - 1;
  CHECK(repeated <= kills * 50);
}

TEST_CASE("a program that is no program, and quotes without an end, are errors of the configuration") {
  HandoverRig rig(0);
  TestCollector missing(rig.database, {"--once", "--exec", "/nonexistent/sender --fast"});
  CHECK(status_of(missing) == 3);
  CHECK(missing.log().find("cannot start /nonexistent/sender: No such file or directory") !=
        std::string::npos);
  TestCollector open_quote(rig.database, {"--once", "--exec", "sh -c 'cat"});
  CHECK(status_of(open_quote) == 3);
  CHECK(open_quote.log().find("sink.exec has a quote or a backslash without its end") != std::string::npos);
}

}  // namespace mailroom::test::exec_test
