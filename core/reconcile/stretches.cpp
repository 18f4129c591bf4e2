// A sweep over the ids in their order, which joins neighbours that are alike.

#include "reconcile/stretches.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace mailroom {
namespace {

bool comes_before(const Piece& a, const Piece& b) {
  return std::make_tuple(!a.is_batch(), a.source, a.kind) < std::make_tuple(!b.is_batch(), b.source, b.kind);
}

}  // namespace

std::vector<const Piece*> Situation::emissions() const {
  std::vector<const Piece*> found;
  for (const auto& piece : pieces) {
    if (piece.is_batch() && piece.state == BatchState::emitted) found.push_back(&piece);
  }
  return found;
}

const Piece* Situation::last_passing() const {
  const Piece* last = nullptr;
  for (const auto& piece : pieces) {
    if (piece.is_passing() && (last == nullptr || piece.source > last->source)) last = &piece;
  }
  return last;
}

const Piece* Situation::find(PieceKind kind) const {
  const auto found =
      std::find_if(pieces.begin(), pieces.end(), [&](const auto& piece) { return piece.kind == kind; });
  return found == pieces.end() ? nullptr : &*found;
}

std::int64_t Situation::second() const {
  auto least = std::numeric_limits<std::int64_t>::max();
  for (const auto& piece : pieces) {
    if (piece.is_batch()) least = std::min(least, second_of(piece.leased_at));
  }
  if (least != std::numeric_limits<std::int64_t>::max()) return least;
  const auto* passing = last_passing();
  return passing == nullptr ? least : second_of(passing->leased_at);
}

std::int64_t Situation::passed_second() const {
  const Piece* skipped = nullptr;
  for (const auto& piece : pieces) {
    if (piece.kind == PieceKind::skipped) skipped = &piece;
  }
  if (skipped != nullptr) return second_of(skipped->ended_at);
  const auto* passing = last_passing();
  return passing == nullptr ? std::numeric_limits<std::int64_t>::min() : second_of(passing->leased_at);
}

bool Situation::is_plain() const {
  const Piece* batch = nullptr;
  for (const auto& piece : pieces) {
    if (!piece.is_batch()) continue;
    if (batch != nullptr) return false;
    batch = &piece;
  }
  const bool is_usual = batch != nullptr && batch->state == BatchState::emitted && batch->attempts == 1 &&
                        !batch->is_short && !batch->by_sender;
  return is_usual && std::all_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
           return &piece == batch || piece.kind == PieceKind::written ||
                  (piece.kind == PieceKind::window && piece.source == batch->source);
         });
}

std::int64_t Situation::times_written() const {
  return std::count_if(pieces.begin(), pieces.end(),
                       [](const auto& piece) { return piece.kind == PieceKind::written; });
}

StretchCutter::StretchCutter(std::vector<IdRange> wanted, bool keeps_batches,
                             std::function<void(const Stretch&)> emit)
    : wanted_(std::move(wanted)),
      keeps_batches_(keeps_batches),
      emit_(std::move(emit)),
      position_(std::numeric_limits<std::int64_t>::min()) {}

void StretchCutter::add(Piece piece) {
  if (piece.mask.empty()) {
    drain_to(piece.first);
    accept(std::move(piece));
    return;
  }
  const auto mask = std::move(piece.mask);
  const auto first = piece.first;
  piece.mask.clear();
  for (std::size_t at = mask.find('1'); at != std::string::npos;) {
    const auto end = std::min(mask.find('0', at), mask.size());
    piece.first = first + static_cast<std::int64_t>(at);
    piece.end = first + static_cast<std::int64_t>(end);
    pending_.push(piece);
    at = mask.find('1', end);
  }
}

void StretchCutter::drain_to(std::int64_t first) {
  while (!pending_.empty() && pending_.top().first <= first) {
    auto piece = pending_.top();
    pending_.pop();
    accept(std::move(piece));
  }
}

void StretchCutter::accept(Piece piece) {
  cut_to(piece.first);
  if (piece.first < piece.end)
    active_.insert(std::upper_bound(active_.begin(), active_.end(), piece, comes_before), std::move(piece));
}

void StretchCutter::finish() {
  drain_to(std::numeric_limits<std::int64_t>::max());
  cut_to(std::numeric_limits<std::int64_t>::max());
  if (last_) emit_(*last_);
  last_.reset();
}

void StretchCutter::cut_to(std::int64_t end) {
  while (position_ < end) {
    auto stop = end;
    for (const auto& piece : active_)
      stop = std::min(stop, piece.end);
    if (!active_.empty()) give(position_, stop);
    position_ = stop;
    active_.erase(std::remove_if(active_.begin(), active_.end(),
                                 [&](const auto& piece) { return piece.end <= position_; }),
                  active_.end());
    if (active_.empty()) position_ = end;
  }
}

void StretchCutter::give(std::int64_t first, std::int64_t end) {
  while (next_wanted_ < wanted_.size() && wanted_[next_wanted_].end <= first)
    ++next_wanted_;
  for (auto i = next_wanted_; i < wanted_.size() && wanted_[i].first < end; ++i) {
    join({.first = std::max(first, wanted_[i].first),
          .end = std::min(end, wanted_[i].end),
          .situation = {.pieces = active_}});
  }
}

void StretchCutter::join(Stretch stretch) {
  if (last_ && last_->end == stretch.first) {
    const bool are_alike = !keeps_batches_ && last_->situation.is_plain() && stretch.situation.is_plain() &&
                           last_->situation.second() == stretch.situation.second() &&
                           last_->situation.times_written() == stretch.situation.times_written();
    if (are_alike || last_->situation.pieces == stretch.situation.pieces) {
      last_->end = stretch.end;
      return;
    }
  }
  if (last_) emit_(*last_);
  last_ = std::move(stretch);
}

}  // namespace mailroom
