#include "feed/batch_follower.hpp"

namespace mailroom {

std::vector<EventKey> batch_events(const BatchRow& row, int known_attempts) {
  std::vector<EventKey> events;
  if (row.attempts > known_attempts) events.push_back({row.claimed_us, row.id, EventWord::taken_over});
  if (row.set_aside_us) events.push_back({*row.set_aside_us, row.id, EventWord::set_aside});
  const bool says_something = row.holds_ids || row.emitted + row.skipped > 0;
  if (row.emitted_us && says_something) {
    const bool passed_over = row.emitted == 0 && row.skipped > 0;
    events.push_back({*row.emitted_us, row.id, passed_over ? EventWord::passed_over : EventWord::emitted});
  }
  return events;
}

void BatchFollower::start(const std::vector<BatchRow>& open) {
  attempts_.clear();
  for (const auto& row : open)
    attempts_[row.id] = row.attempts;
}

std::vector<std::int64_t> BatchFollower::open_ids() const {
  std::vector<std::int64_t> ids;
  for (const auto& [id, attempts] : attempts_)
    ids.push_back(id);
  return ids;
}

std::vector<EventKey> BatchFollower::saw(const std::vector<BatchRow>& rows) {
  std::vector<EventKey> all;
  for (const auto& row : rows) {
    const auto known = attempts_.find(row.id);
    const auto events = batch_events(row, known == attempts_.end() ? 1 : known->second);
    all.insert(all.end(), events.begin(), events.end());
    if (row.is_open()) {
      attempts_[row.id] = row.attempts;
    } else {
      attempts_.erase(row.id);
    }
  }
  return all;
}

}  // namespace mailroom
