// The fake server as the world of a play.

#include "differential/fake_world.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mailroom::test {

std::int64_t FakeWorld::insert(int writer, const queue::Action* action) {
  const auto id = server_.draw_token();
  inserted_[writer][id] = action;
  return id;
}

void FakeWorld::commit(int writer, std::optional<int> lifetime) {
  const auto expires = lifetime ? time_.now() + play_unit * *lifetime + play_unit / 2 : TimePoint::max();
  bool notifies = false;
  for (const auto& [id, action] : std::exchange(inserted_[writer], {})) {
    server_.commit_token(id, FakeToken{.expires = expires, .action = action});
    notifies = notifies || !server_.is_silent(id);
  }
  if (notifies) server_.notify();
}

void FakeWorld::roll_back(int writer) {
  for (const auto& [id, action] : std::exchange(inserted_[writer], {}))
    server_.roll_back_token(id);
}

void FakeWorld::flood(int count) {
  bool notifies = false;
  for (int i = 0; i < count; ++i) {
    const auto id = server_.draw_token();
    server_.commit_token(id, time_.now());
    notifies = notifies || !server_.is_silent(id);
  }
  if (notifies) server_.notify();
}

Rewound FakeWorld::rewind(std::int64_t target) {
  const auto [cursor_before, replayed] = server_.queue().rewind(target);
  return {cursor_before, replayed};
}

bool FakeWorld::pause(bool paused) {
  const bool changed = server_.queue().pause(paused);
  if (changed) server_.notify(claim::Notified::queues);
  return changed;
}

void FakeWorld::define(const PlayedDefinition& definition) {
  std::optional<FakeRate> rate;
  if (definition.gap) rate = FakeRate{.gap = play_unit * *definition.gap, .burst = definition.burst};
  server_.queue().define(definition.actions, rate);
  server_.notify(claim::Notified::queues);
}

Snapshot::Batch FakeWorld::describe(std::int64_t id, const FakeBatch& batch) const {
  Snapshot::Batch seen{.id = id,
                       .tokens = batch.tokens,
                       .attempt = batch.attempt,
                       .is_acknowledged = batch.emitted.has_value(),
                       .is_dead = batch.dead,
                       .counts = batch.emitted.value_or(claim::BatchCounts{})};
  if (server_.holds(batch.holder)) seen.holder = batch.holder;
  const auto& skipped = seen.counts.skipped_ids;
  std::erase_if(seen.tokens, [&](std::int64_t token) {
    return std::find(skipped.begin(), skipped.end(), token) != skipped.end();
  });
  return seen;
}

Snapshot FakeWorld::snapshot(const Ids& batches) {
  const auto& queue = server_.queue();
  const auto& tokens = server_.tokens();
  Snapshot seen{.cursor = queue.cursor(), .published_cursor = queue.published_cursor()};
  seen.expired = queue.skipped().expired;
  seen.consumed = queue.skipped().consumed;
  seen.is_polled = server_.is_somebody_polling();
  for (const auto id : queue.waiting()) {
    const auto state = state_of(tokens.committed.at(id), time_.now());
    const bool is_due = state == claim::TokenState::due || state == claim::TokenState::wrong_status;
    if (id > queue.cursor() && is_due) seen.waiting.push_back(id);
  }
  for (const auto& gap : queue.gaps()) {
    for (const auto id : gap) {
      if (tokens.committed.contains(id)) seen.late.push_back(id);
      if (tokens.open.contains(id)) seen.open.push_back(id);
    }
  }
  std::sort(seen.late.begin(), seen.late.end());
  std::sort(seen.open.begin(), seen.open.end());
  for (const auto id : batches)
    seen.batches.push_back(describe(id, queue.batches().at(id)));
  for (const auto& [token, delivery] : queue.deliveries()) {
    std::optional<long> hours;
    if (delivery.not_before)
      hours = std::chrono::round<std::chrono::hours>(*delivery.not_before - time_.now()).count();
    seen.deliveries.push_back({token, fate::outcome_name(delivery.state), delivery.attempts,
                               delivery.unknowns, hours, delivery.batch, delivery.was_accepted,
                               delivery.reply, delivery.address,
                               fmt::format("{}", fmt::join(delivery.earlier, "; "))});
  }
  return seen;
}

}  // namespace mailroom::test
