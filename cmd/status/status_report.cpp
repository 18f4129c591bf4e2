// Lays out the screen of one queue, without the least important tables if it is too long, and its line.

#include "cmd/status/status_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t max_rows = 8;  ///< per table, so that the report fits on a screen

/// True if ids are drawn again that the cursor has passed: nobody sees the tokens that have them.
bool hides_tokens(const status::QueueStatus& queue) {
  return queue.cursor > queue.newest;
}

/// `12 (3 leased, 2 in gap)`: the rest waits above the cursor.
std::string pending_text(const status::QueueStatus& queue) {
  if (hides_tokens(queue)) return "unknown, since the sequence is behind the cursor";
  const auto& pending = queue.pending;
  std::string parts;
  for (const auto& [outcome, tokens] : pending.by_outcome()) {
    if (tokens > 0 && outcome != fate::Outcome::waiting)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", with_thousands(tokens),
                           fate::outcome_text(outcome));
  }
  return fmt::format("{}{}{}", pending.estimated ? "~" : "", with_thousands(pending.total()),
                     parts.empty() ? "" : " (" + parts + ")");
}

std::string oldest_text(const status::QueueStatus& queue) {
  const auto lag = queue.lag();
  if (!lag) return hides_tokens(queue) ? "unknown" : "none";
  return fmt::format("{}{} ({} ago)", queue.pending.oldest_estimated ? "~" : "",
                     moment_text(*queue.pending.oldest_created_at), status::age_text(*lag));
}

std::string cursor_text(const status::QueueStatus& queue) {
  return fmt::format("{}, the newest id is {}", with_thousands(queue.cursor), with_thousands(queue.newest));
}

/// `3 messages, the next in 14m`
std::string scheduled_text(const status::QueueStatus& queue) {
  const auto& scheduled = queue.scheduled;
  const auto overdue = scheduled.overdue(queue.now);
  return fmt::format(
      "{}{}, the next {}", scheduled.estimated ? "~" : "", counted(scheduled.messages, "message"),
      overdue > Milliseconds{0}
          ? "due for " + status::age_text(overdue)
          : "in " + status::age_text(std::chrono::floor<Milliseconds>(*scheduled.next_at - queue.now)));
}

/// `1,204 accepted, 3 rejected in the last hour; 12 deferred, the next in 14s`
std::string deliveries_text(const status::DeliveryStatus& deliveries) {
  std::string text;
  for (const auto& [outcome, count] : deliveries.last_hour)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(count), fate::outcome_text(outcome));
  text = text.empty() ? "none in the last hour" : text + " in the last hour";
  if (deliveries.perhaps_twice > 0)
    text += fmt::format(", {} perhaps twice", with_thousands(deliveries.perhaps_twice));
  if (deliveries.deferred.tokens == 0) return text;
  const auto next = deliveries.deferred.next_in->count() == 0
                        ? "due now"
                        : "the next in " + status::age_text(*deliveries.deferred.next_in);
  return fmt::format("{}; {} waiting for another attempt, {}", text,
                     counted(deliveries.deferred.tokens, "token"), next);
}

/// `3 hard bounces, 1 other, 2 complaints in the last hour; 1 report of no mail that is known`
std::string came_back_text(const status::CameBack& reports) {
  std::vector<std::string> parts;
  if (reports.hard > 0) parts.push_back(counted(reports.hard, "hard bounce"));
  if (reports.bounced > 0) parts.push_back(counted(reports.bounced, "other bounce"));
  if (reports.complaints > 0) parts.push_back(counted(reports.complaints, "complaint"));
  if (reports.unsubscribed > 0) parts.push_back(with_thousands(reports.unsubscribed) + " unsubscribed");
  if (reports.delivered > 0) parts.push_back(with_thousands(reports.delivered) + " delivered");
  if (reports.unmatched > 0)
    parts.push_back(counted(reports.unmatched, "report") + " of no mail that is known");
  return fmt::format("{} in the last hour", joined(parts, ", "));
}

std::string sink_text(const status::UnavailableSink& sink) {
  return fmt::format("{} has been unavailable for {}, next probe {}", shown_text(sink.name),
                     status::age_text(sink.lasts),
                     sink.probe_in.count() == 0 ? "due now" : "in " + status::age_text(sink.probe_in));
}

std::string emitted_text(const status::RecentEmissions& emissions) {
  return fmt::format("{} in {}, {}/s", counted(emissions.total(), "token"), status::age_text(emissions.known),
                     rate_text(emissions.per_second()));
}

std::string gaps_text(const status::QueueStatus& queue) {
  if (queue.gap_ids == 0) return "none";
  const auto writers = std::count_if(queue.gap_holders.begin(), queue.gap_holders.end(),
                                     [](const status::GapHolder& holder) { return holder.writes_tokens; });
  if (writers > 0) {
    return fmt::format("{}, waiting for {}", counted(queue.gap_ids, "id"),
                       counted(writers, "open transaction"));
  }
  return counted(queue.gap_ids, "id") + (queue.gap_holders.empty()
                                             ? ", to be read by the next claim"
                                             : ", of transactions that have ended, not removed yet");
}

/// The pids are shown only if the keys differ.
std::string keys_text(const std::map<std::string, std::string>& keys) {
  std::string text;
  for (const auto& [key, pids] : keys) {
    if (keys.size() == 1) return key;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", key, pids);
  }
  return text;
}

std::string schema_text(const StatusReport& report) {
  return fmt::format("version {}{}", report.schema_version,
                     report.schema_version == report.newest_schema_version
                         ? ""
                         : fmt::format(", newer than this mailroom's {}", report.newest_schema_version));
}

/// The table after an empty line, and how many of `all` rows it omits.
std::string section(const TextTable& table, std::size_t all, std::size_t width) {
  if (table.empty()) return "";
  auto text = "\n" + table.render(width);
  if (all > max_rows)
    text += fmt::format("{} and {} more; -o json lists all\n", ellipsis(),
                        with_thousands(static_cast<std::int64_t>(all - max_rows)));
  return text;
}

std::string optional_age(const std::optional<Milliseconds>& age) {
  return age ? status::age_text(*age) : "?";
}

std::string doing(const status::ServerSession& session) {
  if (!session.readable) return "another user's; needs pg_monitor";
  auto text = session.state;
  if (session.silent_for) text += " " + status::age_text(*session.silent_for);
  if (!session.wait.empty()) text += ", " + session.wait;
  return shown_text(text);
}

std::string render_collectors(const status::QueueStatus& queue, std::size_t width) {
  using Align = TextTable::Align;
  TextTable table({{"collector"}, {"process"}, {"since", Align::right}, {"doing"}});
  for (std::size_t i = 0; i < std::min(queue.collectors.size(), max_rows); ++i) {
    const auto& session = queue.collectors[i].session;
    table.add({fmt::format("pid {}", session.pid), shown_text(session.application),
               optional_age(session.connected_for), doing(session)});
  }
  return section(table, queue.collectors.size(), width);
}

std::string render_open_batches(const status::QueueStatus& queue, std::size_t width) {
  using Align = TextTable::Align;
  TextTable table({{"open batch", Align::right},
                   {"tokens", Align::right},
                   {"attempt", Align::right},
                   {"for", Align::right},
                   {"claimed by"}});
  for (std::size_t i = 0; i < std::min(queue.open_batches.size(), max_rows); ++i) {
    const auto& batch = queue.open_batches[i];
    const auto session = batch.session_lives ? fmt::format(", pid {}", batch.collector)
                         : queue.on_standby  ? std::string()
                                             : std::string(", gone");
    table.add({with_thousands(batch.id), with_thousands(batch.tokens), std::to_string(batch.attempts),
               status::age_text(batch.age), shown_text(batch.claimed_by) + session});
  }
  return section(table, queue.open_batches.size(), width);
}

std::string render_holders(const status::QueueStatus& queue, std::size_t width) {
  using Align = TextTable::Align;
  TextTable table(
      {{"a gap waits for"}, {"user"}, {"open", Align::right}, {"ids, up to", Align::right}, {"doing"}});
  for (std::size_t i = 0; i < std::min(queue.gap_holders.size(), max_rows); ++i) {
    const auto& holder = queue.gap_holders[i];
    const auto who = holder.session.pid == 0
                         ? "prepared " + holder.gid
                         : fmt::format("pid {} {}", holder.session.pid, holder.session.application);
    table.add({shown_text(who), shown_text(holder.session.user), optional_age(holder.session.transaction_age),
               holder.writes_tokens ? with_thousands(holder.ids) : "none", doing(holder.session)});
  }
  return section(table, queue.gap_holders.size(), width);
}

std::size_t line_count(const std::string& text) {
  return line_of(text, text.size()) - 1;
}

/// The tables that fit in `room` lines. The table of collectors is omitted first: it is the least important.
std::string render_tables(const status::QueueStatus& queue, std::size_t width, std::size_t room) {
  std::array<std::string, 3> tables{render_collectors(queue, width), render_holders(queue, width),
                                    render_open_batches(queue, width)};
  auto lines = line_count(tables[0] + tables[1] + tables[2]);
  for (auto& table : tables) {
    if (lines <= room) break;
    lines -= line_count(table);
    table.clear();
  }
  return tables[0] + tables[2] + tables[1];
}

std::string trend_row(const std::string& label, const std::vector<std::optional<double>>& values,
                      const std::string& most) {
  // Not wrapped: a trend begins with blanks where no value is known.
  return fmt::format("{:<12} {}  max {}\n", label + ":", sparkline(values), most);
}

std::string render_trend(const StatusTrend& trend) {
  const auto slowest = Milliseconds{static_cast<Milliseconds::rep>(largest(trend.lag) * 1000)};
  return trend_row("5m of rate", trend.rate, rate_text(largest(trend.rate)) + " tokens/s") +
         trend_row("5m of lag", trend.lag, status::age_text(slowest));
}

}  // namespace

std::vector<std::optional<double>> rate_trend(const status::RecentEmissions& emissions) {
  std::vector<std::optional<double>> rates;
  for (auto i = status::RecentEmissions::bucket_count; i-- > 0;) {
    const auto reach = static_cast<std::int64_t>(i + 1) * status::RecentEmissions::bucket;
    const auto rate = static_cast<double>(emissions.tokens[i]) / status::RecentEmissions::bucket.count();
    rates.push_back(reach <= emissions.known ? std::optional(rate) : std::nullopt);
  }
  return rates;
}

std::string render_text(const StatusReport& report, const StatusStyle& style) {
  const auto& queue = report.queue;
  const auto line = [&style](const std::string& label, const std::string& value) {
    return labelled(label, value, style.width);
  };
  auto text = fmt::format("queue {}: {}\n", shown_text(queue.queue), headline(report.findings, style));
  if (style.outage != nullptr) text += line("reason", shown_text(style.outage->reason));
  text += line("at", moment_text(queue.now));
  const auto& record = queue.record;
  if (record.pause) text += line("paused", pause_text(*record.pause));
  if (!record.properties.actions.empty()) text += line("takes", takes_text(record.properties));
  if (record.properties.priority != 0) text += line("priority", std::to_string(record.properties.priority));
  text += line("pending", pending_text(queue));
  text += line("oldest", oldest_text(queue));
  if (queue.scheduled.messages > 0) text += line("scheduled", scheduled_text(queue));
  text += line("cursor", cursor_text(queue));
  text += line("emitted", emitted_text(queue.emissions));
  if (style.trend != nullptr) text += render_trend(*style.trend);
  text += line("gaps", gaps_text(queue));
  if (queue.replay_ids > 0)
    text += line("replay", counted(queue.replay_ids, "id") + " waiting to be emitted");
  if (!report.asked.roles.empty()) text += line("asked for", asked_text(report.asked));
  const auto& deliveries = queue.deliveries;
  if (!deliveries.empty()) text += line("deliveries", deliveries_text(deliveries));
  if (!queue.came_back.empty()) text += line("came back", came_back_text(queue.came_back));
  for (const auto& sink : deliveries.sinks)
    text += line("sink", sink_text(sink));
  for (const auto& budget : queue.record.budgets)
    text += line("rate", budget_text(budget, queue.queue));
  if (!queue.dead.empty()) {
    const auto count = queue.dead.size();
    text += line("dead", fmt::format("{} {} within a day", count, count == 1 ? "batch" : "batches"));
  }
  text += line("collectors",
               queue.on_standby ? "not visible on a standby" : std::to_string(queue.collectors.size()));
  if (const auto keys = health::consumers_by_key(queue); !keys.empty())
    text += line("signing key", keys_text(keys));
  text += line("schema", schema_text(report));
  const auto findings = render_findings(report.findings, style);
  return text +
         render_tables(queue, style.width,
                       style.max_lines - std::min(style.max_lines, line_count(text + findings))) +
         findings;
}

std::string render_line(const StatusOutage& outage) {
  return fmt::format("{} failure findings=unreachable for={}\n", moment_text(outage.now),
                     status::age_text(outage.lasts));
}

std::string render_line(const StatusReport& report, const std::string& name) {
  const auto& queue = report.queue;
  const auto lag = queue.lag();
  auto line =
      fmt::format("{} {}{} pending={}{} lag={} rate={:.1f}/s collectors={} open={} gaps={} cursor={}",
                  moment_text(queue.now), health::severity_name(health::worst(report.findings)),
                  name.empty() ? "" : " queue=" + shown_text(name), queue.pending.estimated ? "~" : "",
                  queue.pending.total(), lag ? status::age_text(*lag) : "0s", queue.emissions.per_second(),
                  queue.collectors.size(), queue.open_batches.size(), queue.gap_ids, queue.cursor);
  std::set<std::string> codes;
  for (const auto& finding : report.findings) {
    if (codes.insert(finding.code).second) line += (codes.size() == 1 ? " findings=" : ",") + finding.code;
  }
  return line + "\n";
}

}  // namespace mailroom::cmd
