// Cuts overlapping ranges so that all ids of a stretch have the same history.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "reconcile/recorded_ranges.hpp"
#include "selection/id_range.hpp"

namespace mailroom::reconcile {

/// The ranges that hold for a stretch of ids: batches first, in the order of their claims.
struct Situation {
  std::vector<RecordedRange> ranges{};

  /// The last claim or move of the cursor that passed the ids; nullptr if none did.
  const RecordedRange* last_passing() const;
  /// The first range of this kind; nullptr if there is none.
  const RecordedRange* find(RangeKind kind) const;
  /// Tokens created after this second may be others than those that the batches or the passing were of.
  std::int64_t second() const;
  /// When what is not in a batch was skipped, in seconds: `now` if a claim has yet to come to it.
  std::int64_t passed_second(std::int64_t now) const;
  /// How often the output of consumers has the ids.
  std::int64_t times_written() const;
  /// True if only one batch has the ids, and it was acknowledged without any peculiarity.
  bool is_plain() const;
};

/// A range of ids in one situation.
struct Stretch {
  std::int64_t first = 0;
  std::int64_t end = 0;
  Situation situation{};
};

/// Cuts overlapping ranges into disjoint stretches, in the order of ids, as the example in
/// recorded_ranges.hpp shows. Takes ranges in the order of their first ids; memory grows only with the ranges
/// that overlap.
class StretchCutter {
 public:
  /// `wanted` are disjoint ranges in order; other ids are left out. Neighbours that are plain and were
  /// claimed within one second are one stretch, unless `keeps_batches`.
  StretchCutter(std::vector<selection::IdRange> wanted, bool keeps_batches,
                std::function<void(const Stretch&)> emit);

  void add(RecordedRange range);
  /// After the last range.
  void finish();

 private:
  struct Later {
    bool operator()(const RecordedRange& a, const RecordedRange& b) const { return a.first > b.first; }
  };

  void accept(RecordedRange range);
  void accept_parts_to(std::int64_t first);
  void cut_to(std::int64_t end);
  void emit_wanted(std::int64_t first, std::int64_t end);
  void join(Stretch stretch);

  std::vector<selection::IdRange> wanted_;
  std::size_t next_wanted_ = 0;
  bool keeps_batches_;
  std::function<void(const Stretch&)> emit_;
  std::priority_queue<RecordedRange, std::vector<RecordedRange>, Later>
      masked_parts_;  ///< the parts of masked batches
  std::vector<RecordedRange> active_;
  std::int64_t position_;
  std::optional<Stretch> last_;
};

}  // namespace mailroom::reconcile
