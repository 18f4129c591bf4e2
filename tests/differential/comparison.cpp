// Plays operations in a world, and compares what two worlds showed.

#include "differential/comparison.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom::test {

Trace play(const Steps& steps, QueueWorld& world, const Trace& expected) {
  Play play(world, steps.exact, steps.senders);
  Trace trace;
  for (const auto& step : steps.steps) {
    const auto at = trace.size();
    auto reply = step.run(play);
    trace.push_back({std::move(reply), play.state()});
    if (at < expected.size() && trace.back() != expected[at]) break;
  }
  return trace;
}

std::string difference(const Steps& steps, const std::string& name, const Trace& trace,
                       const std::string& other_name, const Trace& other) {
  const auto end = static_cast<std::ptrdiff_t>(std::min(trace.size(), other.size()));
  const auto [first, second] = std::mismatch(trace.begin(), trace.begin() + end, other.begin());
  if (first == trace.begin() + end) return {};
  std::string text;
  const auto count = static_cast<std::size_t>(first - trace.begin()) + 1;
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("{:3} {}: {}\n", i + 1, steps.steps[i].text, trace[i].reply);
  return text + fmt::format("{}: {}\n{}{}: {}\n{}", name, first->reply, first->state, other_name,
                            second->reply, second->state);
}

}  // namespace mailroom::test
