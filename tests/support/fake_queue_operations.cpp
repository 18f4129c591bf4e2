// What becomes of the batches and tokens of the fake queue, and what its operators do.

#include <algorithm>
#include <fmt/format.h>

#include "db/errors.hpp"
#include "support/fake_queue.hpp"

namespace mailroom::test {

void FakeDelivery::keep(std::int64_t next) {
  if (state == fate::Outcome::deferred && reply.empty() && (earlier.empty() || batch == next)) return;
  earlier.push_back(fmt::format("{} {} {}", fate::outcome_name(state), address, reply));
}

void FakeQueue::close(std::int64_t id, FakeBatch& batch, const claim::Receipt& receipt) {
  if (batch.emitted) return;
  batch.emitted = receipt.counts;
  skipped_.expired += receipt.counts.expired;
  skipped_.consumed += receipt.counts.consumed;
  if (!receipt.outcomes) return;
  for (const auto token : batch.tokens) {
    const auto outcome = std::find_if(receipt.outcomes->begin(), receipt.outcomes->end(),
                                      [&](const auto& known) { return known.token == token; });
    if (outcome != receipt.outcomes->end())
      record(id, *outcome);
    else
      record(id, {.token = token, .state = fate::Outcome::cancelled, .reply = "the token was deleted"});
  }
}

void FakeQueue::bury(std::int64_t id, FakeBatch& batch, bool delivers) {
  batch.dead = true;
  if (!delivers) return;
  for (const auto token : batch.tokens)
    record(id, {.token = token,
                .state = fate::Outcome::rejected,
                .reply = "its batch was dead-lettered after too many attempts, none of which reached the "
                         "receiver"});
}

/// A deferral of a token that is gone, or that expires before it would be tried again, is none.
void FakeQueue::end_deferral(claim::TokenOutcome& outcome, TimePoint until) const {
  if (outcome.state != fate::Outcome::deferred) return;
  const auto token = setup_.tokens.committed.find(outcome.token);
  if (token == setup_.tokens.committed.end()) {
    outcome.state = fate::Outcome::cancelled;
    outcome.reply = "the token was deleted";
    outcome.address.clear();
  } else if (until > token->second.expires - std::chrono::minutes(1)) {
    outcome.state = fate::Outcome::expired;
  }
}

/// What an attempt came to that was taken over.
void FakeQueue::record_late(std::int64_t id, const FakeBatch& batch, const claim::Receipt& receipt) {
  if (!receipt.outcomes) return;
  for (auto outcome : *receipt.outcomes) {
    if (outcome.attempts + outcome.unknowns == 0) continue;
    const bool has_it = batch.is_open() && std::ranges::count(batch.tokens, outcome.token) > 0;
    if (!has_it && !deliveries_.contains(outcome.token)) continue;
    const auto [at, is_first] =
        deliveries_.try_emplace(outcome.token, FakeDelivery{.state = fate::Outcome::deferred, .batch = id});
    auto& delivery = at->second;
    if (!delivery.late.emplace(id, receipt.lease.attempt).second) continue;
    end_deferral(outcome, now() + std::chrono::duration_cast<TimePoint::duration>(outcome.wait));
    // It would be mailed again.
    if (outcome.state == fate::Outcome::accepted && delivery.not_before &&
        !is_resent_after(outcome.token, id)) {
      std::swap(delivery.state, outcome.state);
      std::swap(delivery.address, outcome.address);
      std::swap(delivery.reply, outcome.reply);
      delivery.not_before.reset();
      delivery.was_accepted = true;
    }
    delivery.earlier.push_back(
        fmt::format("{} {} {}", fate::outcome_name(outcome.state), outcome.address, outcome.reply));
    delivery.attempts += outcome.attempts;
    delivery.was_accepted = delivery.was_accepted || outcome.state == fate::Outcome::accepted;
  }
}

bool FakeQueue::is_resent_after(std::int64_t token, std::int64_t batch) const {
  const auto resent = resent_.find(token);
  return resent != resent_.end() && resent->second >= batch;
}

void FakeQueue::note_resent(std::int64_t token) {
  resent_[token] = batches_.empty() ? 0 : batches_.rbegin()->first;
}

/// Never changes what a newer batch has recorded.
void FakeQueue::record(std::int64_t batch, claim::TokenOutcome outcome) {
  const auto until = now() + std::chrono::duration_cast<TimePoint::duration>(outcome.wait);
  end_deferral(outcome, until);
  const auto [at, is_first] = deliveries_.try_emplace(outcome.token);
  auto& delivery = at->second;
  if (!is_first && delivery.batch > batch) return;
  // A deferral without words says nothing of the token, so that an earlier deferral stays.
  const bool keeps_reply = !is_first && outcome.reply.empty() && outcome.state == fate::Outcome::deferred &&
                           delivery.state == fate::Outcome::deferred && delivery.batch != batch;
  const bool is_other = delivery.batch != batch || delivery.state != outcome.state;
  if (!is_first && !keeps_reply && is_other) delivery.keep(batch);
  if (!keeps_reply) {
    delivery.reply = outcome.reply;
    delivery.address = outcome.address;
  }
  delivery.state = outcome.state;
  delivery.attempts += outcome.attempts;
  delivery.unknowns += outcome.unknowns;
  delivery.batch = batch;
  delivery.was_accepted = delivery.was_accepted || outcome.state == fate::Outcome::accepted;
  delivery.not_before.reset();
  if (outcome.state != fate::Outcome::deferred) return;
  delivery.not_before = until;
  delivery.deferral = ++deferrals_;
}

FakeQueue::Rewound FakeQueue::rewind(std::int64_t target) {
  const auto& [committed, open, last] = setup_.tokens;
  if (target < 0 || target > last)
    throw db::DatabaseError(ExitCode::failed, "no token has this id yet", "",
                            std::string(db::sqlstate::not_reached));
  Rewound rewound{.cursor_before = cursor_};
  for (auto at = committed.upper_bound(target); at != committed.end() && at->first <= cursor_; ++at)
    rewound.replayed += is_taken(at->second) && state_of(at->second, now()) == claim::TokenState::due ? 1 : 0;
  cut_batches([target](std::int64_t id) { return id > target; });
  for (auto& gap : gaps_)
    gap.erase(gap.upper_bound(target), gap.end());
  std::erase_if(gaps_, [](const auto& gap) { return gap.empty(); });
  cancel_deferred(target);
  for (auto id = target + 1; id <= cursor_; ++id)
    note_resent(id);
  cursor_ = published_ = target;
  return rewound;
}

/// An empty batch stays open, so that its collector can still acknowledge it.
void FakeQueue::cut_batches(const std::function<bool(std::int64_t)>& is_cut) {
  for (auto& [id, batch] : batches_) {
    if (batch.is_open()) std::erase_if(batch.tokens, is_cut);
  }
}

void FakeQueue::cancel_deferred(std::int64_t beyond) {
  for (auto at = deliveries_.upper_bound(beyond); at != deliveries_.end(); ++at) {
    auto& delivery = at->second;
    if (delivery.state == fate::Outcome::deferred) {
      delivery.keep(delivery.batch);
      delivery.address.clear();
      delivery.state = fate::Outcome::cancelled;
      delivery.reply = "the cursor was moved: it emits the token";
    }
    delivery.not_before.reset();
    delivery.unknowns = 0;
  }
}

int FakeQueue::replay(const std::vector<std::int64_t>& tokens) {
  std::set<std::int64_t> ids;
  for (const auto id : tokens) {
    const auto token = setup_.tokens.committed.find(id);
    const bool in_gap =
        std::any_of(gaps_.begin(), gaps_.end(), [id](const auto& gap) { return gap.contains(id); });
    const bool known = token != setup_.tokens.committed.end() && id <= cursor_;
    if (known && is_taken(token->second) && !in_gap) ids.insert(id);
  }
  if (ids.empty()) return 0;
  cut_batches([&ids](std::int64_t id) { return ids.contains(id); });
  for (const auto id : ids) {
    const auto delivery = deliveries_.find(id);
    if (delivery == deliveries_.end()) continue;
    delivery->second.not_before.reset();
    delivery->second.unknowns = 0;
  }
  std::ranges::for_each(ids, [this](std::int64_t id) { note_resent(id); });
  published_ = cursor_;
  gaps_.push_back(ids);
  return static_cast<int>(ids.size());
}

void FakeQueue::define(const std::optional<std::set<const queue::Action*>>& actions,
                       const std::optional<FakeRate>& rate) {
  actions_ = actions;
  const auto before = std::exchange(rate_, rate);
  if (before && rate_) rate_->taken_until = std::min(before->taken_until, now() + rate_->gap * rate_->burst);
}

void FakeQueue::add_batch(int session, const std::vector<std::int64_t>& tokens) {
  std::set<std::int64_t> passed;
  for (const auto id : waiting()) {
    const bool is_new = std::find(tokens.begin(), tokens.end(), id) != tokens.end();
    if (id > cursor_ && !is_new) passed.insert(id);
  }
  leave_gap(setup_.tokens.last);
  if (!passed.empty()) gaps_.push_back(std::move(passed));
  cursor_ = setup_.tokens.last;
  batches_[static_cast<std::int64_t>(batches_.size()) + 1] =
      FakeBatch{.tokens = tokens, .holder = session, .holds = {{session, now()}}};
}

template <typename Each>
void FakeQueue::for_waiting(const Each& each) const {
  const auto& committed = setup_.tokens.committed;
  for (const auto& gap : gaps_) {
    for (const auto id : gap) {
      const auto token = committed.find(id);
      if (token != committed.end() && is_taken(token->second)) each(id, token->second);
    }
  }
  for (auto at = committed.upper_bound(cursor_); at != committed.end(); ++at) {
    if (is_taken(at->second)) each(at->first, at->second);
  }
}

std::vector<std::int64_t> FakeQueue::waiting() const {
  std::vector<std::int64_t> waiting;
  for_waiting([&](std::int64_t id, const FakeToken& /*token*/) { waiting.push_back(id); });
  return waiting;
}

std::size_t FakeQueue::due() const {
  std::size_t due = 0;
  for_waiting([&, time = now()](std::int64_t /*id*/, const FakeToken& token) {
    due += state_of(token, time) == claim::TokenState::due ? 1 : 0;
  });
  return due;
}

}  // namespace mailroom::test
