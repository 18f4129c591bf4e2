#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.hpp"
#include "doctor/subject.hpp"
#include "queue/fix_commands.hpp"
#include "queue/foundations.hpp"
#include "queue/queue_health.hpp"
#include "queue/sequence_fix.hpp"

namespace mailroom {
namespace {

/// Of the tokens at or below a cursor that no claim has seen only those count that are due.
Findings judge_missed(const SequenceFix& fix) {
  Findings findings;
  for (const auto& missed : fix.queues) {
    if (missed.cursor > fix.sequence_before || missed.due == 0) continue;
    findings.push_back(
        failure(fmt::format("{} due token{} made after the cursor of the queue {} had passed {}: "
                            "nobody emits {}",
                            with_thousands(missed.due), missed.due == 1 ? " was" : "s were", missed.queue,
                            missed.due == 1 ? "its id" : "their ids", missed.due == 1 ? "it" : "them"),
                {fix_sequence_command}));
  }
  return findings;
}

/// The tokens at or below the sequence are all that the queue can have, unless rows came from elsewhere.
Findings judge_position(const SequenceFix& fix) {
  const auto drawn = with_thousands(fix.sequence_before);
  Findings findings;
  if (fix.newest_token > fix.sequence_before) {
    findings.push_back(
        failure(fmt::format("tokens_id_seq stands at {}, behind the newest token {}: the next INSERT fails",
                            drawn, with_thousands(fix.newest_token)),
                {fix_sequence_command}));
  }
  for (const auto& missed : fix.queues) {
    if (missed.cursor <= fix.sequence_before) continue;
    findings.push_back(failure(
        fmt::format("tokens_id_seq stands at {}, behind the cursor of the queue {} at {}: every claim fails. "
                    "Tokens were truncated or restored. The fix emits those made since, and none twice",
                    drawn, missed.queue, with_thousands(missed.cursor)),
        {fix_sequence_command}));
  }
  return findings;
}

bool has_queue(Connection& connection, const std::string& queue) {
  return connection.run("SELECT EXISTS (SELECT FROM jobs WHERE job_type = $1)", queue)[0][0].as<bool>();
}

/// Of what status finds.
bool concerns_collectors(const QueueFinding& finding) {
  constexpr std::array<std::string_view, 7> codes{"no_collector",     "batch_open",        "batch_left",
                                                  "collector_silent", "collector_blocked", "queue_locked",
                                                  "foreign_lock"};
  return std::find(codes.begin(), codes.end(), finding.code) != codes.end();
}

}  // namespace

Findings check_sequence(Subject& subject) {
  auto& connection = *subject.connection;
  require_ids_to_spare(connection);
  Findings findings;
  if (!gives_ids_in_order(connection)) {
    findings.push_back(
        failure("tokens_id_seq does not give out ids one by one, in order: late tokens can be passed by",
                {std::string(ids_in_order_statement) + ";"}));
  }
  const auto fix = plan_sequence_fix(connection, 0);
  for (auto judge_part : {judge_position, judge_missed}) {
    auto part = judge_part(fix);
    std::move(part.begin(), part.end(), std::back_inserter(findings));
  }
  return or_fine(std::move(findings), fmt::format("at {}, one id at a time, ahead of every cursor",
                                                  with_thousands(fix.sequence_before)));
}

Findings check_queue(Subject& subject) {
  const auto& queue = subject.settings->queue;
  const auto row = subject.connection->run(
      "SELECT count(*) FILTER (WHERE job_type = $1) > 0, coalesce(string_agg(job_type, ', ' ORDER BY "
      "job_type), "
      "'none'), format('INSERT INTO jobs (job_type, last_seq) VALUES (%L, 0);', $1::text) FROM jobs",
      queue)[0];
  if (row[0].as<bool>()) return {fine(queue + " is a row of jobs")};
  return {failure(fmt::format("there is no queue {}; those of jobs are: {}", queue, row[1].c_str()),
                  {row[2].c_str()})};
}

Findings check_collectors(Subject& subject) {
  if (subject.in_recovery) return {not_checked("collectors are connected to the primary")};
  const auto& settings = *subject.settings;
  if (!has_queue(*subject.connection, settings.queue))
    return {not_checked("there is no queue " + settings.queue)};
  const auto status = read_queue_status(*subject.connection, settings.queue);
  HealthLimits limits;
  limits.collector_silence = silence_limit(settings.poll_interval);
  Findings findings;
  for (const auto& found : judge_queue(status, limits)) {
    if (!concerns_collectors(found)) continue;
    // Who sets a queue up asks the doctor before there is a collector.
    const bool fails = found.severity == Severity::failure && found.code != "no_collector";
    const auto mend = found.mend.empty() ? std::vector<std::string>() : std::vector{found.mend};
    findings.push_back(fails ? failure(found.text, mend) : warning(found.text, mend));
  }
  const auto count = static_cast<std::int64_t>(status.collectors.size());
  return or_fine(std::move(findings),
                 count == 1 ? "1 is connected" : fmt::format("{} are connected", with_thousands(count)));
}

Findings check_batches(Subject& subject) {
  constexpr int shown = 5;
  Findings findings;
  const auto rows = subject.connection->run(
      "SELECT id, job_type, attempts, (SELECT coalesce(sum(upper(g) - lower(g)), 0) FROM unnest(ids) g), "
      "count(*) OVER () FROM mailroom_batches WHERE set_aside_at IS NOT NULL AND emitted_at IS NULL "
      "ORDER BY id DESC LIMIT $1",
      shown);
  for (const auto& row : rows) {
    findings.push_back(
        warning(fmt::format("batch {} of the queue {} was set aside after {} attempts: {} tokens were "
                            "not handed on",
                            row[0].c_str(), row[1].c_str(), row[2].c_str(),
                            with_thousands(row[3].as<std::int64_t>())),
                {fmt::format("mailroom audit batch:{}", row[0].c_str())}));
  }
  if (!rows.empty() && rows[0][4].as<std::int64_t>() > shown) {
    findings.push_back(warning(
        fmt::format("in all {} batches were set aside", with_thousands(rows[0][4].as<std::int64_t>())),
        {"mailroom audit --since 30d"}));
  }
  return or_fine(std::move(findings), "none was set aside");
}

}  // namespace mailroom
