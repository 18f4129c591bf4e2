// Prints what adaptive batching and each fixed pair make of the same arrivals, as CSV: for
// scripts/plot-batching.

#include <fmt/format.h>

#include "adaptive/played_batches.hpp"

using namespace mailroom;
using namespace mailroom::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t seed = 1;
constexpr Milliseconds line_costs[] = {10ms, 30ms, 100ms, 300ms, 1s, 3s, 10s};

void print(const ArrivalKind& kind, const Arrivals& arrivals, const consumer::Batcher::Options& options) {
  const auto played = play_batches(arrivals, options);
  const bool is_adaptive = options.adaptive.has_value();
  fmt::print("{},\"{}\",{},{},{},{},{},{:.1f}\n", kind.name, kind.what, is_adaptive ? "adaptive" : "fixed",
             options.line_limit, options.batch_timeout.count(),
             is_adaptive ? options.adaptive->line_cost.count() : 0,
             static_cast<double>(played.tokens) / static_cast<double>(played.lines),
             played.mean_delay() / 1ms);
}

}  // namespace

int main() {
  fmt::print("arrivals,rate,batching,limit,timeout_ms,line_cost_ms,tokens_per_line,mean_delay_ms\n");
  for (const auto& kind : arrival_kinds()) {
    const auto arrivals = kind.arrive(seed);
    for (const auto& options : fixed_grid())
      print(kind, arrivals, options);
    for (const auto line_cost : line_costs)
      print(kind, arrivals, adaptive_batching(line_cost));
  }
}
