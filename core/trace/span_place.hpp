// Decides which trace the span of an attempt or an event belongs to, and whether it is recorded. Pure, but
// for the random ids.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

#include "trace/span.hpp"

namespace mailroom::trace {

/// Where a span is in the traces.
struct SpanPlace {
  TraceId trace{};
  SpanId id{};
  std::optional<SpanId> parent{};
  std::optional<SpanLink> link{};
  bool is_recorded = false;
};

/// What leads to a span.
struct SpanCause {
  std::optional<TraceParent> origin{};  ///< the span that asked for the mail, if it is known
  bool is_first = true;                 ///< nothing was tried before
  std::chrono::nanoseconds age{};       ///< since the mail was asked for
};

/// Draws ids, and what is recorded.
class SpanSampler {
 public:
  /// After this time a span begins a trace of its own: a trace that is stretched is of no use.
  static constexpr std::chrono::minutes joined_for{10};

  /// `share`: of the traces that begin here, how many are recorded, from 0 to 1.
  SpanSampler(double share, std::uint64_t seed) : share_(share), random_(seed) {}

  /// The first attempt is a child of its origin, and recorded if that is. A later one, and one long after, is
  /// a root with a link to its origin, which neither stretches that trace nor has to be recorded as it is.
  SpanPlace place(const SpanCause& cause);
  /// A root, and whether it is recorded is as for others.
  TraceParent root();
  SpanId next_id();

 private:
  bool draws_yes();

  double share_;
  std::mt19937_64 random_;
};

/// The id of the span that says when a mail was asked for: the same whoever makes it, so that it is one span
/// however often it is sent.
SpanId enqueued_id(const TraceParent& origin, std::int64_t token);

}  // namespace mailroom::trace
