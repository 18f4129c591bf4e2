#include "audit/timeline.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/moment.hpp"

namespace mailroom {
namespace {

// The database rounds times to seconds, so a creation may be half a second earlier than recorded. An account
// is created before its first token, and activated after that is consumed.
constexpr std::int64_t before_all = -500'001;
constexpr std::int64_t after_all = 999'999;

std::int64_t read_moment(const char* flag, const std::string& text, std::int64_t now) {
  if (const auto moment = parse_moment(text, now)) return *moment;
  throw Error(ExitCode::usage, fmt::format("{} is '{}', and must be a time", flag, text),
              "for example 2h for two hours ago, 2026-11-21T09:30 (UTC), or 2026-11-21T09:30+02:00");
}

}  // namespace

TimelineEntry to_the_second(std::int64_t seconds, AccountChange change) {
  const auto rank =
      to_microseconds(seconds) + (change.what == AccountChange::What::created ? before_all : after_all);
  return {.at = to_microseconds(seconds), .precise = false, .rank = rank, .what = std::move(change)};
}

TimelineEntry to_the_second(std::int64_t seconds, TokenChange change) {
  const auto rank =
      to_microseconds(seconds) + (change.what == TokenChange::What::issued ? before_all + 1 : after_all - 1);
  return {.at = to_microseconds(seconds), .precise = false, .rank = rank, .what = std::move(change)};
}

TimelineEntry entry_of(const BatchRecord& batch) {
  const auto at = batch.emitted_at.value_or(batch.dead_at.value_or(batch.claimed_at));
  return {.at = at, .rank = at, .what = batch};
}

TimelineEntry entry_of(const Abandonment& abandonment) {
  return {.at = abandonment.at, .rank = abandonment.at, .what = abandonment};
}

std::vector<Abandonment> abandonments_of(const BatchRecord& batch) {
  std::vector<Abandonment> abandonments;
  for (const auto& attempt : batch.abandoned)
    abandonments.push_back({.claim = as_claimed(batch, attempt), .at = attempt.taken_over_at});
  return abandonments;
}

TimelineEntry entry_of(const Operation& operation) {
  return {.at = operation.at, .rank = operation.at, .what = operation};
}

TimelineEntry entry_of(const SchemaChange& change) {
  return {.at = change.at, .rank = change.at, .what = change};
}

Period parse_period(const std::string& since, const std::string& until, std::int64_t now) {
  Period period;
  if (!since.empty()) period.since = read_moment("--since", since, now);
  if (!until.empty()) period.until = read_moment("--until", until, now);
  if (period.since < period.until) return period;
  throw Error(ExitCode::usage, "--until must be later than --since",
              "without --until, events until now are shown");
}

void Timeline::arrange(const Period& period, std::int64_t limit) {
  const auto is_outside = [&](const TimelineEntry& entry) {
    const auto seconds = entry.at / microseconds_a_second;
    return seconds < period.since || seconds >= period.until;
  };
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_outside), entries.end());
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const auto count = static_cast<std::int64_t>(entries.size());
  if (count <= limit) return;
  entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(limit));
  omitted += count - limit;
}

}  // namespace mailroom
