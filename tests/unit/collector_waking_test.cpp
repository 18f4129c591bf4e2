// A collector polling, listening and draining, beside a session that represents a second collector. The poll
// interval is an hour, so a token that the collector does not notice is not emitted.

#include "support/catch.hpp"
#include "support/collector_rig.hpp"

namespace mailroom::test::collector_waking_test {

using namespace std::chrono_literals;
using test::Call;
using test::CollectorRig;
using test::ServerFault;
using test::ServerOperation;

namespace {

class WakingRig : public CollectorRig {
 public:
  bool notify_always = false;

  void run() {
    auto with = setup(100);
    with.turns.batcher.batch_timeout = 10ms;
    with.turns.batcher.poll_interval = 1h;
    with.notify_always = notify_always;
    consumer::Collector(
        with, limits, [with] { return with; }, environment, log)
        .run();
  }

  /// Commits one token per millisecond, which is enough to keep the collector polling.
  void stream(Milliseconds from, Milliseconds to) {
    for (auto at = from; at < to; at += 1ms)
      environment.at(at, [this] { commit(server.draw_token()); });
  }
  void commit(std::int64_t id) {
    server.commit_token(id);
    if (!server.is_silent(id)) server.notify();
  }
  /// A token that is inserted at one time and committed at another.
  void hold(Milliseconds inserted, Milliseconds committed) {
    environment.at(inserted, [this, committed] {
      const auto id = server.draw_token();
      held_silent += server.is_silent(id) ? 1 : 0;
      environment.at(committed, [this, id] { commit(id); });
    });
  }
  int held_silent = 0;
};

}  // namespace

TEST_CASE(
    "a token inserted while the collector polls and committed while it listens waits at most as long as it "
    "was open") {
  WakingRig rig;
  rig.stream(100ms, 300ms);
  rig.hold(250ms, 2s);
  rig.environment.at(3800ms, [&] { CHECK(rig.each_emitted_once()); });
  rig.stop_at(4s);
  rig.run();
  CHECK(rig.held_silent == 1);
}

TEST_CASE("with notify_always every insert notifies") {
  WakingRig rig;
  rig.notify_always = true;
  rig.stream(100ms, 300ms);
  rig.hold(250ms, 2s);
  rig.stop_at(4s);
  rig.run();
  CHECK(rig.held_silent == 0);
  CHECK(rig.each_emitted_once());
}

TEST_CASE("a collector that stops while polling notifies the others") {
  WakingRig rig;
  const auto other = rig.server.connect();
  rig.stream(100ms, 300ms);
  rig.hold(250ms, 2s);
  rig.environment.at(260ms, [&] { other->take_notifications(); });
  rig.stop_at(280ms);
  rig.run();
  CHECK(rig.held_silent == 1);
  CHECK(other->take_notifications() == claim::Notified::drain);
}

TEST_CASE("a collector that stops while listening notifies nobody") {
  WakingRig rig;
  const auto other = rig.server.connect();
  rig.stop_at(500ms);
  rig.run();
  CHECK(other->take_notifications() == claim::Notified::no);
}

TEST_CASE("a collector that hears of another one stopping polls until all silent transactions have ended") {
  WakingRig rig;
  const auto other = rig.server.connect();
  rig.environment.at(100ms, [&] { CHECK(other->arrange(claim::Waking::stay_polling)); });
  rig.hold(150ms, 2s);
  rig.environment.at(200ms, [&] { other->arrange(claim::Waking::drain); });
  rig.environment.at(3900ms, [&] { CHECK(rig.each_emitted_once()); });
  rig.stop_at(4s);
  rig.run();
  CHECK(rig.held_silent == 1);
}

TEST_CASE("a failed statement that kept inserts from notifying is corrected") {
  WakingRig rig;
  rig.stream(100ms, 300ms);
  // The second arrange() call is the request to stay polling. It takes effect, but its reply is an error.
  rig.server.on_call = [](const Call& call) {
    return call.operation == ServerOperation::arrange && call.nth == 2 ? ServerFault::canceled
                                                                       : ServerFault::none;
  };
  bool was_polling = false;
  rig.environment.at(250ms, [&] { was_polling = rig.server.is_somebody_polling(); });
  rig.environment.at(2s, [&] { CHECK_FALSE(rig.server.is_somebody_polling()); });
  rig.stop_at(4s);
  rig.run();
  CHECK(was_polling);
  CHECK(rig.logged("retrying"));
  CHECK(rig.each_emitted_once());
}

}  // namespace mailroom::test::collector_waking_test
