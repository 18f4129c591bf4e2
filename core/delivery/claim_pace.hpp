// Whether a sink gains by a second open batch.
#pragma once

#include <optional>

#include "base/clock.hpp"

namespace mailroom {

/// Decides whether a sink keeps two batches open, of half a claim each, or one. With two the other side works
/// while the consumer acknowledges and claims; but what a claim costs beside its tokens is then paid twice,
/// which a fast other side does not make up for. Pure: takes times.
class ClaimPace {
 public:
  /// About what the server spends on a token, for its claim, its fetch and its record.
  static constexpr std::chrono::microseconds token_cost{10};

  /// A batch has been claimed, and begins.
  void began(TimePoint now);
  /// A batch of `tokens` is done at `now`, for which the other side took `busy`. A whole claim has
  /// `whole` tokens.
  void finished(TimePoint now, std::chrono::nanoseconds busy, int tokens, int whole);

  /// True for two.
  bool overlaps() const { return overlaps_; }

 private:
  std::optional<TimePoint> finished_at_{};
  std::chrono::nanoseconds claim_took_{};  ///< from the end of a batch to the beginning of the next
  bool overlaps_ = true;
};

}  // namespace mailroom
