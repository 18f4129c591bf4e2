// A sink with outcomes gives one for each token, also for those that the consumer skipped; the others are
// counted by the reason to skip them.

#include "consumer/emission_log.hpp"

#include <vector>

namespace mailroom::consumer {
namespace {

constexpr std::chrono::minutes interval{1};

constexpr std::array refused_states{fate::Outcome::expired, fate::Outcome::deferred, fate::Outcome::rejected,
                                    fate::Outcome::unknown, fate::Outcome::cancelled};

std::size_t place_of(fate::Outcome state) {
  return static_cast<std::size_t>(state);
}

}  // namespace

void EmissionLog::skipped(int tokens, int expired, TimePoint now) {
  if (tokens == 0) return;
  totals_.skipped += tokens;
  totals_.consumed += tokens - expired;
  totals_.by_state[place_of(fate::Outcome::expired)] += expired;
  since_ = since_.value_or(now);
}

void EmissionLog::finished(const claim::Receipt& receipt, TimePoint now) {
  const auto& counts = receipt.counts;
  if (counts.emitted > 0) ++totals_.batches;
  totals_.tokens += counts.emitted;
  totals_.skipped += counts.skipped();
  if (receipt.outcomes) {
    for (const auto& outcome : *receipt.outcomes)
      ++totals_.by_state[place_of(outcome.state)];
  } else {
    totals_.by_state[place_of(fate::Outcome::expired)] += counts.expired;
    totals_.consumed += counts.consumed;
    totals_.wrong_status += counts.wrong_status;
    totals_.invalid += counts.invalid;
  }
  since_ = since_.value_or(now);
}

TimePoint EmissionLog::due(Loop loop) const {
  if (!since_) return TimePoint::max();
  if (loop == Loop::busy) return *since_ + interval;
  return last_line_ ? std::max(*last_line_ + interval, *since_) : *since_;
}

void EmissionLog::write(TimePoint now) {
  if (!since_) return;
  std::vector<Field> fields{
      {"batches", totals_.batches}, {"tokens", totals_.tokens}, {"skipped", totals_.skipped}};
  const auto add = [&](std::string_view name, std::int64_t tokens) {
    if (tokens > 0) fields.emplace_back(name, tokens);
  };
  for (const auto state : refused_states)
    add(fate::outcome_name(state), totals_.by_state[place_of(state)]);
  add("consumed", totals_.consumed);
  add("wrong_status", totals_.wrong_status);
  add("invalid", totals_.invalid);
  const bool has_expired = totals_.by_state[place_of(fate::Outcome::expired)] > 0;
  log_.write(has_expired ? LogLevel::warn : LogLevel::info, "emitted", std::span<const Field>(fields));
  totals_ = {};
  since_.reset();
  last_line_ = now;
}

}  // namespace mailroom::consumer
