// Every line is a message of its own, whose id is the same at each attempt.

#include "outcomes/outcome_feed.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/printable.hpp"

namespace mailroom {
namespace {

constexpr std::chrono::minutes patience{10};  ///< longer than any answer may take

}  // namespace

Milliseconds pause_of_outcome(int attempts) {
  constexpr std::array<int, 5> pauses{15, 30, 60, 120, 240};
  return std::chrono::seconds(
      pauses.at(static_cast<std::size_t>(std::clamp(attempts, 0, static_cast<int>(pauses.size()) - 1))));
}

OutcomeFeed::OutcomeFeed(std::unique_ptr<Carrier> carrier, const Dispatcher::Options& options, Log& log)
    : in_flight_(options.in_flight), dispatcher_(std::move(carrier), options), log_(log) {}

int OutcomeFeed::round(KeptOutcomes& kept) {
  const auto outcomes = kept.due(in_flight_);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& outcome = outcomes[i];
    dispatcher_.submit({.id = static_cast<std::int64_t>(i),
                        .queue = outcome.queue,
                        .batch = outcome.id,
                        .attempt = outcome.attempts + 1,
                        .line = 1,
                        .action = "outcome",
                        .tokens = {outcome.token},
                        .message_id = fmt::format("{}.outcome.{}", outcome.queue, outcome.id)},
                       SpooledText(outcome.line));
  }
  if (outcomes.empty()) return 0;
  if (!dispatcher_.wait(steady_now() + patience)) dispatcher_.cancel();
  auto answers = dispatcher_.take();
  const auto taken = std::ranges::count_if(answers, [](const auto& dispatched) {
    return dispatched.is_final && dispatched.answer.verdict == Verdict::accepted;
  });
  record(kept, outcomes, std::move(answers));
  return static_cast<int>(taken);
}

void OutcomeFeed::record(KeptOutcomes& kept, const std::vector<KeptOutcome>& outcomes,
                         std::vector<Dispatched> answers) {
  std::vector<std::int64_t> done;
  for (const auto& dispatched : answers) {
    if (!dispatched.is_final) continue;
    const auto& answer = dispatched.answer;
    const auto& outcome = outcomes.at(static_cast<std::size_t>(answer.id));
    // The program may name the token, as it does for a line of collect.
    auto verdict = answer.verdict;
    for (const auto& named : answer.tokens)
      if (named.token == outcome.token) verdict = named.verdict;
    if (verdict == Verdict::accepted || verdict == Verdict::rejected) {
      if (verdict == Verdict::rejected)
        log_.warn("an outcome was refused for good, and is dropped",
                  {{"token", outcome.token}, {"state", outcome.state}, {"reply", printable(answer.reply)}});
      done.push_back(outcome.id);
    } else if (verdict == Verdict::unavailable || answer.is_excused) {
      kept.put_off(outcome.id, answer.wait.value_or(std::chrono::seconds(1)), false);
    } else {
      kept.put_off(outcome.id,
                   std::max(pause_of_outcome(outcome.attempts), answer.wait.value_or(Milliseconds(0))), true);
    }
  }
  if (!done.empty()) kept.remove(done);
}

}  // namespace mailroom
