#include <array>

#include "schedules/oracle.hpp"
#include "schedules/process.hpp"
#include "support/catch.hpp"

namespace mailroom::test::exhaustive_test {

using namespace std::chrono_literals;
using test::Mishap;
using test::Step;
using test::World;

namespace {

constexpr auto stop_time = 9s;
constexpr auto ended_time = 18s;

/// Full batches, remainders, late commits, tokens that expire before and during their wait, an abandoned
/// batch.
void script(World& world) {
  const auto start = world.time.now();
  world.commit(4, false);
  world.at(100ms, [&] { world.commit(3); });
  world.at(150ms, [&] { world.commit(1); });
  world.at(160ms, [&world, late = world.draw_token()] {
    world.at(1200ms, [&world, late] { world.commit_token(late); });
  });
  world.at(1s, [&world, start] { world.commit(2, true, start + 1500ms); });
  world.at(1100ms, [&world, start] { world.commit(1, true, start + 1100ms); });
  world.at(1500ms, [&] { world.add_abandoned(2); });
  world.at(3s, [&] { world.commit(7); });
  world.at(4200ms, [&] { world.commit(1, false); });
  world.at(5500ms, [&] { world.commit(2); });
  world.at(stop_time, [&] {
    for (const auto& process : world.processes())
      process->stop();
  });
}

/// Starts a new collector for what a mishap in the last seconds left behind.
void sweep(World& world, Milliseconds mishap_time) {
  const bool left = world.server.due() > 0 || world.server.open_batches() > 0;
  if (left && mishap_time > stop_time - 3s) {
    world.process(0).start();
    world.at(ended_time + 4s, [&] { world.process(0).stop(); });
    world.run_until(ended_time + 6s);
  }
}

/// Runs the scenario with a mishap at step `fatal`; returns false if there are fewer steps.
bool play(int processes, int fatal, Mishap mishap, Milliseconds linger) {
  World world(1, {.processes = processes, .latency = 4ms, .prompt = false});
  int steps = 0;
  Milliseconds mishap_time{};
  world.choose = [&](Step) {
    if (++steps != fatal) return Mishap::none;
    mishap_time = world.time.elapsed();
    return mishap;
  };
  world.server.linger = linger;
  world.revive = 200ms;
  script(world);
  for (const auto& process : world.processes())
    process->start();
  world.run_until(stop_time + 1ms);
  world.closing = true;
  world.run_until(ended_time);
  sweep(world, mishap_time);
  const auto fault = judge(world);
  INFO(processes << " collectors, mishap " << static_cast<int>(mishap) << " at step " << fatal
                 << ", the server keeps a session " << linger.count() << " ms\n"
                 << (fault.empty() ? fault : world.report(60)));
  if (!fault.empty()) FAIL(fault);
  return steps >= fatal;
}

}  // namespace

TEST_CASE("with any mishap at any step every token is emitted in time, and none twice except after a crash") {
  constexpr std::array mishaps{Mishap::lost_request, Mishap::lost_reply, Mishap::crash_before,
                               Mishap::crash_after,  Mishap::torn_line,  Mishap::output_closed,
                               Mishap::stop};
  int schedules = 0;
  for (const int processes : {1, 2}) {
    for (const auto mishap : mishaps) {
      for (const auto linger : {0ms, 400ms}) {
        if (linger > 0ms && mishap != Mishap::lost_request && mishap != Mishap::lost_reply) continue;
        int step = 1;
        while (play(processes, step, mishap, linger))
          ++step;
        REQUIRE(step > 60);
        schedules += step;
      }
    }
  }
  CHECK(schedules > 1000);
}

}  // namespace mailroom::test::exhaustive_test
