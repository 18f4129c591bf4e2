// Reads --since and --until, and sorts and cuts the events between them.

#include "audit/timeline.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace mailroom::audit {
namespace {

Moment read_moment(const std::string& flag, const std::string& text, Moment now) {
  if (const auto moment = parse_moment(text, now)) return *moment;
  throw Error(ExitCode::usage, fmt::format("{} is '{}', and must be a time", flag, text),
              "for example 2h for two hours ago, 2026-11-21T09:30 (UTC), or 2026-11-21T09:30+02:00");
}

feed::EventKind kind_of(const queue::BatchRecord& batch) {
  if (batch.is_open()) return feed::EventKind::leased;
  if (!batch.emitted_at) return feed::EventKind::dead;
  return batch.is_skipped() || batch.emitted == 0 ? feed::EventKind::skipped : feed::EventKind::emitted;
}

}  // namespace

Period parse_period(const std::string& since, const std::string& until, Moment now, const std::string& what) {
  Period period;
  if (!since.empty()) period.since = read_moment(what + "since", since, now);
  if (!until.empty()) period.until = read_moment(what + "until", until, now);
  if (period.since < period.until) return period;
  throw Error(ExitCode::usage, fmt::format("{0}until must be later than {0}since", what),
              fmt::format("without {}until, the period ends now", what));
}

void Timeline::add(const queue::BatchRecord& batch) {
  const auto at = batch.emitted_at.value_or(batch.dead_at.value_or(batch.claimed_at));
  entries.push_back({kind_of(batch), at, batch});
}

void Timeline::arrange(const Period& period, std::int64_t limit) {
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [&](const auto& entry) { return !period.has(entry.at); }),
                entries.end());
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.order() < b.order(); });
  const auto count = static_cast<std::int64_t>(entries.size());
  if (count <= limit) return;
  entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(limit));
  omitted += count - limit;
}

std::vector<feed::Event> abandonments_of(const queue::BatchRecord& batch) {
  std::vector<feed::Event> events;
  for (const auto& attempt : batch.abandoned)
    events.push_back({feed::EventKind::abandoned, attempt.taken_over_at, queue::as_claimed(batch, attempt)});
  return events;
}

}  // namespace mailroom::audit
