// When the log says how many tokens were emitted, and what became of the others: a line a minute at most.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "claim/queue_session.hpp"

namespace mailroom::consumer {

/// Counts what became of tokens, and logs the counts: at once when the loop becomes idle after a minute
/// without a line, and once a minute under load. A warning if tokens expired before they were emitted.
class EmissionLog {
 public:
  enum class Loop { busy, idle };

  /// `log` must outlive this.
  explicit EmissionLog(Log& log) : log_(log) {}

  /// A claim has skipped tokens, of which that many had expired.
  void skipped(int tokens, int expired, TimePoint now);
  /// The sink has finished a batch.
  void finished(const claim::Receipt& receipt, TimePoint now);

  /// When the next line is due; TimePoint::max() if there is nothing to say.
  TimePoint due(Loop loop) const;
  void write_if_due(TimePoint now, Loop loop) {
    if (due(loop) <= now) write(now);
  }
  /// Writes what was counted since the last line, if anything was.
  void write(TimePoint now);

 private:
  /// As Outcome numbers them; those of `accepted` are the emitted ones.
  using ByState = std::array<std::int64_t, fate::outcome_count>;

  struct Totals {
    std::int64_t batches = 0;
    std::int64_t tokens = 0;
    std::int64_t skipped = 0;
    std::int64_t consumed = 0;
    std::int64_t wrong_status = 0;
    std::int64_t invalid = 0;
    ByState by_state{};
  };

  Log& log_;
  Totals totals_;
  std::optional<TimePoint> since_;      ///< the first that was counted since the last line
  std::optional<TimePoint> last_line_;  ///< when it was written
};

}  // namespace mailroom::consumer
