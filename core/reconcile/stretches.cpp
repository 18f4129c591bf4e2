// A sweep over the ids in their order, which joins neighbours that are alike.

#include "reconcile/stretches.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace mailroom::reconcile {
namespace {

bool comes_before(const RecordedRange& a, const RecordedRange& b) {
  return std::make_tuple(!a.is_batch(), a.source, a.kind) < std::make_tuple(!b.is_batch(), b.source, b.kind);
}

}  // namespace

const RecordedRange* Situation::last_passing() const {
  const RecordedRange* last = nullptr;
  for (const auto& range : ranges) {
    if (range.is_passing() && (last == nullptr || range.source > last->source)) last = &range;
  }
  return last;
}

const RecordedRange* Situation::find(RangeKind kind) const {
  const auto found =
      std::find_if(ranges.begin(), ranges.end(), [&](const auto& range) { return range.kind == kind; });
  return found == ranges.end() ? nullptr : &*found;
}

std::int64_t Situation::second() const {
  auto least = std::numeric_limits<std::int64_t>::max();
  for (const auto& range : ranges) {
    if (range.is_batch()) least = std::min(least, second_of(range.leased_at));
  }
  if (least != std::numeric_limits<std::int64_t>::max()) return least;
  const auto* passing = last_passing();
  return passing == nullptr ? least : second_of(passing->leased_at);
}

std::int64_t Situation::passed_second(std::int64_t now) const {
  for (const auto place : {RangeKind::above, RangeKind::gap, RangeKind::replay}) {
    if (find(place) != nullptr) return now;
  }
  const RecordedRange* skipped = nullptr;
  for (const auto& range : ranges) {
    if (range.kind == RangeKind::skipped) skipped = &range;
  }
  if (skipped != nullptr) return second_of(skipped->ended_at);
  const auto* passing = last_passing();
  return passing == nullptr ? std::numeric_limits<std::int64_t>::min() : second_of(passing->leased_at);
}

bool Situation::is_plain() const {
  const RecordedRange* batch = nullptr;
  for (const auto& range : ranges) {
    if (!range.is_batch()) continue;
    if (batch != nullptr) return false;
    batch = &range;
  }
  const bool is_usual = batch != nullptr && batch->state == BatchState::emitted && batch->attempts == 1 &&
                        !batch->is_short && !batch->by_sender;
  return is_usual && std::all_of(ranges.begin(), ranges.end(), [&](const auto& range) {
           return &range == batch || range.kind == RangeKind::written ||
                  (range.kind == RangeKind::window && range.source == batch->source);
         });
}

std::int64_t Situation::times_written() const {
  return std::count_if(ranges.begin(), ranges.end(),
                       [](const auto& range) { return range.kind == RangeKind::written; });
}

StretchCutter::StretchCutter(std::vector<selection::IdRange> wanted, bool keeps_batches,
                             std::function<void(const Stretch&)> emit)
    : wanted_(std::move(wanted)),
      keeps_batches_(keeps_batches),
      emit_(std::move(emit)),
      position_(std::numeric_limits<std::int64_t>::min()) {}

void StretchCutter::add(RecordedRange range) {
  if (range.mask.empty()) {
    accept_parts_to(range.first);
    accept(std::move(range));
    return;
  }
  const auto mask = std::move(range.mask);
  const auto first = range.first;
  range.mask.clear();
  for (std::size_t at = mask.find('1'); at != std::string::npos;) {
    const auto end = std::min(mask.find('0', at), mask.size());
    range.first = first + static_cast<std::int64_t>(at);
    range.end = first + static_cast<std::int64_t>(end);
    masked_parts_.push(range);
    at = mask.find('1', end);
  }
}

void StretchCutter::accept_parts_to(std::int64_t first) {
  while (!masked_parts_.empty() && masked_parts_.top().first <= first) {
    auto range = masked_parts_.top();
    masked_parts_.pop();
    accept(std::move(range));
  }
}

void StretchCutter::accept(RecordedRange range) {
  cut_to(range.first);
  if (range.first < range.end)
    active_.insert(std::upper_bound(active_.begin(), active_.end(), range, comes_before), std::move(range));
}

void StretchCutter::finish() {
  accept_parts_to(std::numeric_limits<std::int64_t>::max());
  cut_to(std::numeric_limits<std::int64_t>::max());
  if (last_) emit_(*last_);
  last_.reset();
}

void StretchCutter::cut_to(std::int64_t end) {
  while (position_ < end) {
    auto stop = end;
    for (const auto& range : active_)
      stop = std::min(stop, range.end);
    if (!active_.empty()) emit_wanted(position_, stop);
    position_ = stop;
    active_.erase(std::remove_if(active_.begin(), active_.end(),
                                 [&](const auto& range) { return range.end <= position_; }),
                  active_.end());
    if (active_.empty()) position_ = end;
  }
}

void StretchCutter::emit_wanted(std::int64_t first, std::int64_t end) {
  while (next_wanted_ < wanted_.size() && wanted_[next_wanted_].end <= first)
    ++next_wanted_;
  for (auto i = next_wanted_; i < wanted_.size() && wanted_[i].first < end; ++i) {
    join({.first = std::max(first, wanted_[i].first),
          .end = std::min(end, wanted_[i].end),
          .situation = {.ranges = active_}});
  }
}

void StretchCutter::join(Stretch stretch) {
  if (last_ && last_->end == stretch.first) {
    const bool are_alike = !keeps_batches_ && last_->situation.is_plain() && stretch.situation.is_plain() &&
                           last_->situation.second() == stretch.situation.second() &&
                           last_->situation.times_written() == stretch.situation.times_written();
    if (are_alike || last_->situation.ranges == stretch.situation.ranges) {
      last_->end = stretch.end;
      return;
    }
  }
  if (last_) emit_(*last_);
  last_ = std::move(stretch);
}

}  // namespace mailroom::reconcile
