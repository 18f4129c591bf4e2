// An id is never zero: that would be none.

#include "trace/span_place.hpp"

#include <cstring>

namespace mailroom::trace {
namespace {

/// The finalizer of SplitMix64: every bit of the result depends on every bit of `x`.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

SpanId id_of(std::uint64_t number) {
  if (number == 0) number = 1;
  SpanId id;
  std::memcpy(id.data(), &number, id.size());
  return id;
}

}  // namespace

SpanId SpanSampler::next_id() {
  return id_of(random_());
}

bool SpanSampler::draws_yes() {
  return share_ >= 1 || std::uniform_real_distribution<double>(0, 1)(random_) < share_;
}

TraceParent SpanSampler::root() {
  TraceParent root{.span = next_id(), .is_sampled = draws_yes()};
  for (std::size_t half = 0; half < 2; ++half) {
    const auto bytes = next_id();
    std::memcpy(&root.trace.at(half * bytes.size()), bytes.data(), bytes.size());
  }
  return root;
}

SpanPlace SpanSampler::place(const SpanCause& cause) {
  const auto& origin = cause.origin;
  if (origin && cause.is_first && cause.age <= joined_for) {
    return {
        .trace = origin->trace, .id = next_id(), .parent = origin->span, .is_recorded = origin->is_sampled};
  }
  const auto own = root();
  SpanPlace place{.trace = own.trace, .id = own.span, .is_recorded = own.is_sampled};
  if (origin) place.link = SpanLink{origin->trace, origin->span};
  return place;
}

SpanId enqueued_id(const TraceParent& origin, std::int64_t token) {
  std::uint64_t low = 0;
  std::uint64_t parent = 0;
  std::memcpy(&low, origin.trace.data() + 8, sizeof low);
  std::memcpy(&parent, origin.span.data(), sizeof parent);
  return id_of(mixed(low ^ mixed(parent ^ mixed(static_cast<std::uint64_t>(token)))));
}

}  // namespace mailroom::trace
