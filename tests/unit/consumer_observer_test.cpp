#include "consumer/consumer_observer.hpp"

#include <algorithm>
#include <utility>

#include "db/errors.hpp"
#include "support/catch.hpp"
#include "support/collector_rig.hpp"

namespace mailroom::test::consumer_observer_test {

using namespace std::chrono_literals;
using test::Call;
using test::CollectorRig;
using test::ServerFault;
using test::ServerOperation;

namespace {

/// Writes down what it is told, but the turns of the loop.
class Notebook final : public consumer::ConsumerObserver {
 public:
  void delivers() override { events.emplace_back("delivers"); }
  void connected() override { events.emplace_back("connected"); }
  void disconnected() override { events.emplace_back("disconnected"); }
  void claimed(const consumer::ObservedClaim& claim) override {
    claims.push_back(claim.took);
    if (claim.only_acknowledged) events.emplace_back("acknowledged");
  }
  void finished(const consumer::FinishedBatch& batch) override {
    int created = 0;
    for (const auto& tokens : batch.created)
      created += tokens.count;
    CHECK(created == batch.receipt.counts.emitted);
    events.push_back(std::string(consumer::batch_trigger_name(batch.trigger)) + " " +
                     std::to_string(batch.size));
  }
  void reloading() override { events.emplace_back("reloading"); }
  void reloaded(bool succeeded) override { events.emplace_back(succeeded ? "reloaded" : "not reloaded"); }
  void stopping() override { events.emplace_back("stopping"); }

  std::vector<std::string> events;
  std::vector<std::chrono::nanoseconds> claims;
};

using Events = std::vector<std::string>;

void run(CollectorRig& rig, consumer::ConsumerObserver& observer) {
  consumer::Collector(
      rig.setup(), rig.limits, [&] { return rig.reload(); }, rig.environment, rig.log, observer)
      .run();
}

}  // namespace

TEST_CASE("an observer learns why each batch was taken") {
  CollectorRig rig;
  Notebook notebook;
  rig.server.add_tokens(4);
  rig.environment.at(10s, [&] { rig.server.add_tokens(3); });
  rig.environment.at(20s, [&] { rig.server.add_tokens(1); });
  rig.stop_at(30s);
  run(rig, notebook);
  CHECK(notebook.events == Events{"connected", "delivers", "full 3", "delivers", "drain 1", "delivers",
                                  "full 3", "delivers", "timeout 1", "stopping"});
}

TEST_CASE("a batch that is taken over, and one that was committed late, are replays") {
  CollectorRig rig;
  Notebook notebook;
  rig.server.add_abandoned(2);
  const auto late = rig.server.draw_token();
  rig.server.add_tokens(3);
  rig.environment.at(10s, [&] { rig.server.commit_token(late); });
  rig.stop_at(30s);
  run(rig, notebook);
  CHECK(std::count(notebook.events.begin(), notebook.events.end(), "replay 2") == 1);
  CHECK(std::count(notebook.events.begin(), notebook.events.end(), "replay 1") == 1);
  CHECK(std::count(notebook.events.begin(), notebook.events.end(), "full 3") == 1);
}

TEST_CASE("an observer learns how long a claim took") {
  CollectorRig rig;
  Notebook notebook;
  rig.server.claim_takes = 30ms;
  rig.server.add_tokens(1);
  rig.limits.once = true;
  run(rig, notebook);
  REQUIRE(!notebook.claims.empty());
  for (const auto took : notebook.claims)
    CHECK(took == 30ms);
}

TEST_CASE("an observer learns of sessions that end and begin, and of reloads") {
  CollectorRig rig;
  Notebook notebook;
  bool fails = true;
  rig.reload = [&]() -> consumer::CollectorSetup {
    if (std::exchange(fails, false)) throw Error(ExitCode::configuration, "the file is broken");
    return rig.setup();
  };
  rig.environment.at(1s, [&] { rig.server.go_away(500ms); });
  rig.environment.at(5s, [&] { rig.environment.request_reload(); });
  rig.environment.at(6s, [&] { rig.environment.request_reload(); });
  rig.stop_at(10s);
  run(rig, notebook);
  CHECK(notebook.events == Events{"connected", "disconnected", "connected", "reloading", "not reloaded",
                                  "reloading", "reloaded", "stopping"});
}

TEST_CASE("several observers are told the same") {
  CollectorRig rig;
  Notebook first;
  Notebook second;
  consumer::ConsumerObservers both;
  both.add(first);
  both.add(second);
  rig.server.add_tokens(4);
  rig.environment.at(1s, [&] { rig.server.go_away(500ms); });
  rig.environment.at(5s, [&] { rig.environment.request_reload(); });
  rig.stop_at(10s);
  run(rig, both);
  CHECK(first.events == second.events);
  CHECK(first.claims.size() == second.claims.size());
  CHECK(first.events.size() >= 9);
}

TEST_CASE("the loop is overdue only when it neither turns nor has said how long it waits") {
  const TimePoint start{1h};
  consumer::LoopState state(start);
  CHECK(state.overdue(start) == 0s);
  CHECK(state.overdue(start + 3s) == 3s);
  state.turned(start + 4s);
  CHECK(state.overdue(start + 5s) == 1s);
  state.waits(start + 60s);
  CHECK(state.overdue(start + 59s) == 0s);
  CHECK(state.overdue(start + 62s) == 2s);
  state.delivers();
  CHECK(state.overdue(start + 24h) == 0s);
  state.turned(start + 25h);
  CHECK(state.overdue(start + 25h + 1s) == 1s);
}

TEST_CASE("a loop that works is never overdue") {
  CollectorRig rig;
  consumer::LoopState state(rig.environment.now());
  std::chrono::nanoseconds worst{};
  for (auto at = 0ms; at < 60s; at += 100ms) {
    rig.environment.at(at, [&] { worst = std::max(worst, state.overdue(rig.environment.now())); });
  }
  rig.environment.at(20s, [&] { rig.server.add_tokens(4); });
  rig.environment.at(30s, [&] { rig.server.go_away(5s); });
  rig.stop_at(60s);
  run(rig, state);
  CHECK(worst <= 1s);
}

}  // namespace mailroom::test::consumer_observer_test
