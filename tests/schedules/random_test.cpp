#include <cstdlib>

#include "schedules/oracle.hpp"
#include "schedules/process.hpp"
#include "support/catch.hpp"

namespace mailroom::test::random_test {

using namespace std::chrono_literals;
using test::Knobs;
using test::Mishap;
using test::Step;
using test::World;

namespace {

constexpr Milliseconds chaos = 10s;  ///< the phase with faults; a quiet phase follows

Milliseconds some(World& world, Milliseconds longest) {
  return Milliseconds(world.below(static_cast<std::uint64_t>(longest.count()) + 1));
}

Knobs draw_knobs(std::uint64_t seed) {
  std::mt19937_64 random(seed * 2 + 1);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Knobs knobs{.processes = between(1, 4),
              .limit = between(1, 6),
              .batch_timeout = Milliseconds(between(300, 3000)),
              .poll_interval = Milliseconds(between(100, 1000)),
              .latency = Milliseconds(between(0, 12)),
              .prompt = random() % 3 == 0};
  // Only a few: a stream takes as long as ten other schedules.
  knobs.conditional = !knobs.prompt && random() % 20 == 0;
  // A stream must not exceed the collectors' capacity: a token may be late only because it was not noticed.
  if (knobs.conditional) knobs.limit *= 100;
  return knobs;
}

TimePoint draw_expiry(World& world, bool expiring) {
  if (!expiring || world.below(4) != 0) return TimePoint::max();
  return world.time.now() + some(world, 3s);
}

/// A stream of tokens, fast enough to keep collectors polling or slower; each is committed at once, later or
/// never.
void stream_some(World& world, bool late, bool expiring) {
  const auto gap = 1 + world.below(4);
  const auto count = 1 + world.below(150);
  for (std::uint64_t i = 0; i < count; ++i) {
    world.time.at(world.time.now() + Milliseconds(i * world.below(gap + 1)), [&world, late, expiring] {
      const auto id = world.draw_token();
      const auto expires = draw_expiry(world, expiring);
      if (!late || world.below(5) != 0) return world.commit_token(id, expires);
      if (world.below(4) == 0) return world.roll_back_token(id);
      world.time.at(world.time.now() + some(world, world.chance(0.7) ? 30ms : 3000ms),
                    [&world, id, expires] { world.commit_token(id, expires); });
    });
  }
}

/// Tokens that are committed at once, long after others, or never.
void commit_some(World& world, bool late, bool expiring) {
  const int count = static_cast<int>(1 + world.below(8));
  for (int i = 0; i < count; ++i) {
    const auto id = world.draw_token();
    const auto expires = draw_expiry(world, expiring);
    if (late && world.below(3) == 0) {
      if (world.below(4) == 0) continue;  // rolled back
      world.time.at(world.time.now() + some(world, 3s), [&world, id, expires] {
        world.commit_token(id, expires);
        if (world.knobs.prompt) world.server.notify();
      });
    } else {
      world.commit_token(id, expires);
    }
  }
  if (world.knobs.prompt) return world.server.notify();
  if (world.below(3) > 0)
    world.time.at(world.time.now() + some(world, 700ms), [&world] { world.server.notify(); });
}

void misfortune(World& world) {
  auto& process = world.process(static_cast<int>(world.below(world.processes().size())));
  const auto back = [&] {
    world.time.at(world.time.now() + some(world, 2s), [&process] { process.start_when_gone(); });
  };
  switch (world.below(7)) {
    case 0:
      return world.restart_server(some(world, 1500ms));
    case 1:
      return process.break_connection();
    case 2:
      process.crash();
      return back();
    case 3:
      process.stop();
      return back();
    case 4:
      process.close_output();
      return back();
    case 5:
      return process.reload(1 + static_cast<int>(world.below(static_cast<std::uint64_t>(world.knobs.limit))),
                            false);
    default:
      return process.reload(world.knobs.limit, true);
  }
}

/// Lost connections and crashes at random steps.
void haunt_steps(World& world) {
  const double rate = world.chance(0.5) ? 0.0 : 0.03;
  world.choose = [&world, rate](Step) {
    if (world.time.elapsed() > chaos || !world.chance(rate)) return Mishap::none;
    return static_cast<Mishap>(world.below(7));
  };
  world.revive = 300ms;
  world.server.linger = world.chance(0.5) ? 0ms : some(world, 500ms);
  world.slow_readers = world.chance(0.3) ? 0.2 : 0.0;
}

void schedule(World& world) {
  const bool late = world.chance(0.5);
  const bool expiring = world.chance(0.3);
  for (auto left = 3 + world.below(world.knobs.conditional ? 12 : 30); left > 0; --left)
    world.at(some(world, chaos), [&world, late, expiring] {
      (world.knobs.conditional ? stream_some : commit_some)(world, late, expiring);
    });
  if (world.chance(0.3)) return;  // no faults
  haunt_steps(world);
  for (auto left = world.below(8); left > 0; --left)
    world.at(some(world, chaos), [&world] { misfortune(world); });
}

/// Returns the fault with the last steps; empty if there is none.
std::string play_with(std::uint64_t seed, const Knobs& knobs) {
  World world(seed, knobs);
  schedule(world);
  for (const auto& process : world.processes())
    world.at(some(world, 500ms), [&process = *process] { process.start_when_gone(); });
  const auto quiet_at = chaos + 6s + world.knobs.batch_timeout + world.knobs.poll_interval * 2;
  world.at(chaos, [&world] {
    world.slow_readers = 0;
    world.process(0).start();
  });
  world.at(quiet_at, [&world] {
    world.closing = true;
    for (const auto& process : world.processes())
      process->stop();
  });
  world.run_until(quiet_at + 8s);
  const auto fault = judge(world);
  return fault.empty() ? fault : fault + "\nthe last steps:\n" + world.report(80);
}

std::string play(std::uint64_t seed) {
  return play_with(seed, draw_knobs(seed));
}

/// Collectors that choose limit and timeout themselves.
std::string play_adaptive(std::uint64_t seed) {
  auto knobs = draw_knobs(seed);
  knobs.limit *= static_cast<int>(1 + seed % 5);
  knobs.line_cost = Milliseconds(1 << seed % 13);
  return play_with(seed, knobs);
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Ends a session, or stops a process. The inserts that it kept from notifying are drained by the process
/// itself after its return, or by the others.
void leave_some(World& world) {
  const auto number = static_cast<int>(world.below(world.processes().size()));
  auto& process = world.process(number);
  if (world.chance(0.3)) return process.break_connection();
  process.stop();
  // Process 0 always returns.
  if (number > 0 && world.chance(0.5)) return;
  world.time.at(world.time.now() + some(world, 2s), [&process] { process.start_when_gone(); });
}

/// A world without crashes, in which a lost wake-up is not made up for by a poll within a minute.
std::string play_waking(std::uint64_t seed) {
  auto knobs = draw_knobs(seed);
  knobs.limit = 100 + knobs.limit;
  knobs.conditional = true;
  knobs.prompt = false;
  knobs.poll_interval = 60s;
  knobs.batch_timeout = Milliseconds(seed % 3 == 0 ? seed % 10 : seed % 2000);
  World world(seed, knobs);
  for (auto left = 1 + world.below(12); left > 0; --left)
    world.at(4s + some(world, chaos), [&world] {
      stream_some(world, true, false);
      if (world.chance(0.2))
        world.time.at(world.time.now() + some(world, 200ms), [&world] { leave_some(world); });
    });
  for (const auto& process : world.processes())
    process->start();
  const auto end = 4s + chaos + 10s + knobs.batch_timeout;
  world.at(end, [&world] {
    world.closing = true;
    for (const auto& process : world.processes())
      process->stop();
  });
  world.run_until(end + 8s);
  const auto fault = judge(world);
  return fault.empty() ? fault : fault + "\nthe last steps:\n" + world.report(80);
}

void play_all(std::string (*play_one)(std::uint64_t), std::uint64_t otherwise) {
  const bool one = std::getenv("MAILROOM_SEED") != nullptr;
  const auto first = number_from("MAILROOM_SEED", 1);
  const auto count = one ? 1 : number_from("MAILROOM_SCHEDULES", otherwise);
  for (auto seed = first; seed < first + count; ++seed) {
    const auto fault = play_one(seed);
    if (!fault.empty()) {
      FAIL("MAILROOM_SEED=" << seed << " (schedule " << seed - first + 1 << "): " << fault);
    }
  }
}

}  // namespace

TEST_CASE("no order of commits, notifications, timers, losses, crashes and restarts loses or repeats a token",
          "[long]") {
  play_all(play, 2000);
}

TEST_CASE("collectors that adapt limit and timeout lose or repeat no token, and leave none waiting") {
  play_all(play_adaptive, 500);
}

TEST_CASE("no token waits for the poll interval, whichever collectors poll or start to listen meanwhile") {
  play_all(play_waking, 150);
}

}  // namespace mailroom::test::random_test
