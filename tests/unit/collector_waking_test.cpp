// A collector awake, asleep and between, beside another session that stands for a second collector. With a
// poll interval of an hour, what nobody notices waits for an hour.

#include "support/catch.hpp"
#include "support/collector_rig.hpp"

using namespace mailroom;
using namespace std::chrono_literals;
using test::Call;
using test::CollectorRig;
using test::Fault;
using test::Operation;

namespace {

class WakingRig : public CollectorRig {
 public:
  bool notify_always = false;

  void run() {
    auto with = setup(100);
    with.batcher = {.batch_timeout = 10ms, .poll_interval = 1h};
    with.notify_always = notify_always;
    Collector(
        with, limits, [with] { return with; }, surroundings, output, log)
        .run();
  }

  /// One token a millisecond, each committed at once, which is enough to stay awake.
  void stream(Milliseconds from, Milliseconds to) {
    for (auto at = from; at < to; at += 1ms)
      surroundings.at(at, [this] { commit(server.draw_token()); });
  }
  void commit(std::int64_t id) {
    server.commit_token(id);
    if (!server.is_silent(id)) server.notify();
  }
  /// A token that is inserted at one time and committed at another.
  void hold(Milliseconds inserted, Milliseconds committed) {
    surroundings.at(inserted, [this, committed] {
      const auto id = server.draw_token();
      held_silent += server.is_silent(id) ? 1 : 0;
      surroundings.at(committed, [this, id] { commit(id); });
    });
  }
  int held_silent = 0;
};

}  // namespace

TEST_CASE(
    "what was inserted while it was awake and committed while it slept goes out, as late as it was open at "
    "most") {
  WakingRig rig;
  rig.stream(100ms, 300ms);
  rig.hold(250ms, 2s);
  rig.surroundings.at(3800ms, [&] { CHECK(rig.each_emitted_once()); });
  rig.stop_at(4s);
  rig.run();
  CHECK(rig.held_silent == 1);
}

TEST_CASE("with notify_always no insert is kept from notifying") {
  WakingRig rig;
  rig.notify_always = true;
  rig.stream(100ms, 300ms);
  rig.hold(250ms, 2s);
  rig.stop_at(4s);
  rig.run();
  CHECK(rig.held_silent == 0);
  CHECK(rig.each_emitted_once());
}

TEST_CASE("a collector that is told to stop while awake tells the others to settle") {
  WakingRig rig;
  const auto other = rig.server.connect();
  rig.stream(100ms, 300ms);
  rig.hold(250ms, 2s);
  rig.surroundings.at(260ms, [&] { other->take_notifications(); });
  rig.stop_at(280ms);
  rig.run();
  CHECK(rig.held_silent == 1);
  CHECK(other->take_notifications() == Notified::settle);
}

TEST_CASE("a collector that sleeps when it stops tells nobody") {
  WakingRig rig;
  const auto other = rig.server.connect();
  rig.stop_at(500ms);
  rig.run();
  CHECK(other->take_notifications() == Notified::no);
}

TEST_CASE("a collector that hears of another making way looks until all that had not notified is over") {
  WakingRig rig;
  const auto other = rig.server.connect();
  rig.surroundings.at(100ms, [&] { CHECK(other->arrange(Waking::stay_awake)); });
  rig.hold(150ms, 2s);
  rig.surroundings.at(200ms, [&] { other->arrange(Waking::make_way); });
  rig.surroundings.at(3900ms, [&] { CHECK(rig.each_emitted_once()); });
  rig.stop_at(4s);
  rig.run();
  CHECK(rig.held_silent == 1);
}

TEST_CASE("a statement that fails after it kept inserts from notifying is made good") {
  WakingRig rig;
  rig.stream(100ms, 300ms);
  // After it asked who is open at the start it wants to stay awake. It does, and does not hear of it.
  rig.server.on_call = [](const Call& call) {
    return call.operation == Operation::arrange && call.nth == 2 ? Fault::canceled : Fault::none;
  };
  bool was_awake = false;
  rig.surroundings.at(250ms, [&] { was_awake = rig.server.is_somebody_awake(); });
  rig.surroundings.at(2s, [&] { CHECK_FALSE(rig.server.is_somebody_awake()); });
  rig.stop_at(4s);
  rig.run();
  CHECK(was_awake);
  CHECK(rig.logged("trying again"));
  CHECK(rig.each_emitted_once());
}
