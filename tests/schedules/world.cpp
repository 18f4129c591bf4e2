#include "schedules/world.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "schedules/process.hpp"

namespace mailroom::test {
namespace {

/// After a disturbance: the grace for abandoned batches, the longest back-off, and the time the server keeps
/// a session.
constexpr Milliseconds recovery{1500 + 1000 + 500};

double seconds(TimePoint time) {
  return std::chrono::duration<double>(time - TimePoint(std::chrono::hours(1))).count();
}

}  // namespace

World::World(std::uint64_t seed, const Knobs& with) : knobs(with), smallest_limit(with.limit), random_(seed) {
  disturb();  // no collector runs yet
  for (int i = 0; i < knobs.processes; ++i) {
    processes_.push_back(std::make_unique<Process>(*this, i));
  }
}

World::~World() {
  processes_.clear();
}

std::chrono::nanoseconds World::up_to(Milliseconds longest) {
  const auto bound = static_cast<std::uint64_t>(std::chrono::nanoseconds(longest).count()) + 1000;
  return std::chrono::nanoseconds(below(bound) + 1);
}

std::int64_t World::draw_token() {
  const auto id = server.draw_token();
  drawn_[id] = time.now();
  return id;
}

void World::commit_token(std::int64_t id, TimePoint expires) {
  tokens_[id] = {drawn_.at(id), time.now(), expires};
  server.commit_token(id, expires);
  if (knobs.conditional && !server.is_silent(id)) server.notify();
  note(-1, "token committed", id);
}

void World::commit(int count, bool notify, TimePoint expires) {
  for (int i = 0; i < count; ++i) {
    commit_token(draw_token(), expires);
  }
  if (notify) server.notify();
}

void World::add_abandoned(int tokens) {
  const auto before = server.last_token();
  server.add_abandoned(tokens);
  for (auto id = before + 1; id <= server.last_token(); ++id) {
    tokens_[id] = {time.now(), time.now(), TimePoint::max()};
  }
}

void World::restart_server(Milliseconds away) {
  note(-1, "the server restarts, down for ms", away.count());
  disturb();
  server.go_away(away);
  time.at(time.now() + away, [this] { disturb(); });
}

void World::run_until(Milliseconds since_start) {
  const auto until = TimePoint(std::chrono::hours(1)) + since_start;
  while (time.now() < until && fault_.empty()) {
    time.step_to(until);
    for (const auto& process : processes_) {
      process->poke();
    }
    watch();
  }
}

/// Checks that a full batch is taken at once, or within the poll interval if notifications may be lost.
void World::watch() {
  const auto due = server.due();
  const auto limit = static_cast<std::size_t>(knobs.limit);
  if (due < limit || server.batches().size() != batches_seen_) {
    full_since_ = TimePoint::max();
    batches_seen_ = server.batches().size();
  }
  if (due >= limit && full_since_ == TimePoint::max()) full_since_ = time.now();
  if (full_since_ == TimePoint::max()) return;
  const auto patience =
      knobs.latency * 8 + Milliseconds(10) + (knobs.prompt ? Milliseconds() : knobs.poll_interval);
  const auto from = std::max(full_since_, last_disturbance() + recovery);
  if (time.now() > from + patience) fail("a full batch waits, and no collector takes it");
}

TimePoint World::bound_for(TimePoint from, TimePoint emitted, std::chrono::nanoseconds unnoticed) const {
  for (const auto disturbance : disturbances_) {
    if (disturbance <= emitted) from = std::max(from, disturbance + recovery);
  }
  return from + knobs.batch_timeout + unnoticed + knobs.latency * 8 + Milliseconds(20);
}

int World::life_of(int session) const {
  const auto life = life_of_session_.find(session);
  return life == life_of_session_.end() ? -1 : life->second;
}

void World::note(int process, const char* what, std::int64_t value) {
  notes_.push_back({time.now(), process, what, value});
}

void World::fail(const std::string& what) {
  if (fault_.empty()) fault_ = fmt::format("{}, at {:.6f} s", what, seconds(time.now()));
}

std::string World::report(std::size_t steps) const {
  std::string text;
  for (auto i = notes_.size() - std::min(steps, notes_.size()); i < notes_.size(); ++i) {
    const auto& [when, process, what, value] = notes_[i];
    const auto who = process < 0 ? std::string("world") : fmt::format("collector {}", process);
    text += fmt::format("{:10.6f} s  {:<11}  {} {}\n", seconds(when), who, what, value);
  }
  return text;
}

}  // namespace mailroom::test
