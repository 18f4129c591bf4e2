// The checks of sequences, queues, collectors and dead letters.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <span>

#include "base/actor.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "db/search_path.hpp"
#include "doctor/finding.hpp"
#include "doctor/subject.hpp"
#include "health/queue_health.hpp"
#include "queue/home.hpp"
#include "queue/preconditions.hpp"
#include "queue/queue_plan.hpp"
#include "replay/sequence_fix.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::doctor {
namespace {

/// Reports due tokens at or below a cursor that no claim has seen.
void judge_missed(const replay::SequenceFix& fix, Findings& findings) {
  for (const auto& missed : fix.queues) {
    if (missed.cursor > fix.sequence_before || missed.due == 0) continue;
    findings.push_back(
        failure(fmt::format("{} due token{} created after the cursor of the queue {} had passed {}: "
                            "no collector emits {}",
                            with_thousands(missed.due), missed.due == 1 ? " was" : "s were", missed.queue,
                            missed.due == 1 ? "its id" : "their ids", missed.due == 1 ? "it" : "them"),
                {status::fix_sequence()}));
  }
}

/// Reports the sequences that are behind their table or a cursor.
void judge_positions(const replay::SequenceFix& fix, Findings& findings) {
  const queue::TableSequence tokens{.name = "tokens_id_seq",
                                    .table = "tokens",
                                    .position = fix.sequence_before,
                                    .newest = fix.newest_token};
  if (tokens.is_behind()) findings.push_back(finding_of(health::judge_sequence(tokens)));
  for (const auto& missed : fix.queues) {
    if (const auto found = health::judge_cursor(missed.queue, missed.cursor, fix.sequence_before))
      findings.push_back(finding_of(*found));
  }
  for (const auto& sequence : fix.others)
    findings.push_back(finding_of(health::judge_sequence(sequence)));
}

/// Creates `queue` without mailing anybody twice, if that can be said without knowing what it is for: with
/// what no queue takes, or with the action of its name. Empty otherwise.
std::vector<status::Fix> creation_of(db::Connection& connection, const std::string& queue) {
  const auto catalogue = queue::read_queues(connection);
  const auto& queues = catalogue.queues;
  const auto command = "mailroom queue create " + shell_word(queue);
  const auto untaken = queue::untaken_actions(queues, catalogue.actions);
  if (queues.empty()) return {{status::FixKind::create_queue, command}};
  for (const auto& each : catalogue.actions.all()) {
    const auto& action = each.name;
    const auto takes = [&](const auto& other) { return other.properties.takes(action); };
    const bool can_be_taken =
        std::count_if(queues.begin(), queues.end(), takes) == 1 &&
        std::find_if(queues.begin(), queues.end(), takes)->properties.actions.size() != 1;
    const bool is_named = queue::short_action_name(action) == queue && can_be_taken;
    if (is_named || std::find(untaken.begin(), untaken.end(), action) != untaken.end())
      return {{status::FixKind::create_queue, command + " --action " + queue::short_action_name(action)}};
  }
  return {};
}

void warn_of_pauses(db::Connection& connection, Findings& findings) {
  const auto paused_queues = connection.run(R"(
SELECT j.job_type FROM jobs j JOIN mailroom_queues q ON q.name = j.job_type
WHERE q.paused_at IS NOT NULL ORDER BY 1)");
  for (const auto& queue : paused_queues.values<std::string>()) {
    const auto paused = health::judge_pause(status::read_queue_status(connection, queue));
    if (!paused) continue;
    findings.push_back(finding_of(*paused));
    findings.back().reason = "queue " + queue + ": " + shown_text(findings.back().reason);
  }
}

/// Tokens of an action that no queue takes are never emitted.
void warn_of_idle_actions(db::Connection& connection, Findings& findings) {
  const auto catalogue = queue::read_queues(connection);
  const auto untaken = connection.transact(status::read_untaken_actions);
  for (const auto& action : untaken) {
    auto found = health::judge_untaken(action);
    if (const auto* queue = catalogue.find_queue(action.name)) {
      std::vector<std::string> taken{std::string(action.name)};
      for (const auto& other : queue->properties.actions)
        taken.push_back(queue::short_action_name(other));
      std::sort(taken.begin(), taken.end());
      found.fix = status::Fix(status::FixKind::take_actions, fmt::format("mailroom queue set {} --action {}",
                                                                         action.name, joined(taken, ",")));
      found.hint.clear();
    }
    findings.push_back(finding_of(found));
  }
}

/// True for the findings of status that no other check reports. What the relays of this configuration say is
/// for the check `relay`.
bool is_of_this_check(const health::QueueFinding& finding, const config::Settings& settings) {
  constexpr std::array<std::string_view, 10> others{"sequence_behind",
                                                    "replication_role",
                                                    "trigger_silent",
                                                    "messages_without_token",
                                                    "messages_unfit",
                                                    "accounts_without_token",
                                                    "untaken",
                                                    "paused",
                                                    "notifications_held",
                                                    "dead"};
  if (finding.code == "sink_unavailable" && !settings.send.path.targets.empty()) return false;
  return std::find(others.begin(), others.end(), finding.code) == others.end();
}

health::HealthLimits limits_of(const Subject& subject) {
  health::HealthLimits limits;
  limits.collector_silence = health::silence_limit(subject.settings->collect.poll_interval);
  limits.send_connections = subject.settings->send.path.connections;
  if (subject.fingerprint.empty()) return limits;
  limits.keys = subject.previous_fingerprints;
  limits.keys.insert(limits.keys.begin(), subject.fingerprint);
  return limits;
}

}  // namespace

bool has_queue(db::Connection& connection, const std::string& queue) {
  return connection.run("SELECT EXISTS (SELECT FROM jobs WHERE job_type = $1)", queue).value<bool>();
}

Findings check_sequence(Subject& subject) {
  auto& connection = *subject.connection;
  queue::require_ids_to_spare(connection);
  Findings findings;
  if (!queue::gives_ids_in_order(connection)) {
    findings.push_back(failure(
        "tokens_id_seq does not give out ids one by one, in order: the cursor can move past late tokens",
        status::fixes(status::FixKind::order_ids, {queue::ids_in_order_statement(connection)})));
  }
  if (auto statements = queue::statements_for_ordered_ids(connection); !statements.empty()) {
    findings.push_back(
        failure("a sequence of the queue's batches or gaps does not give out ids one by one, in order: the "
                "newest row of a queue is its state, and claims fail",
                status::fixes(status::FixKind::order_ids, statements)));
  }
  const auto fix = replay::check_sequence(connection);
  judge_positions(fix, findings);
  judge_missed(fix, findings);
  subject.gives_good_ids = findings.empty();
  const auto* rest = fix.is_complete ? "" : "; mailroom reconcile checks the many tokens of the last hour";
  return or_fine(std::move(findings), fmt::format("at {}, one id at a time, ahead of every cursor{}",
                                                  with_thousands(fix.sequence_before), rest));
}

Findings check_queue(Subject& subject) {
  auto& connection = *subject.connection;
  Findings findings;
  for (const auto& queue : subject.settings->collect.queues) {
    const auto row = connection.run(R"(
SELECT count(*) FILTER (WHERE job_type = $1) > 0 AS is_known,
  coalesce(string_agg(job_type, ', ' ORDER BY job_type), 'none') AS queues
FROM jobs)",
                                    queue)[0];
    if (row.flag("is_known")) continue;
    const auto fix = creation_of(connection, queue);
    findings.push_back(
        failure(fmt::format("there is no queue {}; the queues are: {}", queue, row.text("queues")), fix,
                fix.empty() ? "name one of them in collect.queue, or with --queue" : ""));
  }
  warn_of_pauses(connection, findings);
  warn_of_idle_actions(connection, findings);
  const auto& queues = subject.settings->collect.queues;
  return or_fine(std::move(findings), fmt::format("{} {} a row in jobs", joined(queues, ", "),
                                                  queues.size() == 1 ? "has" : "have"));
}

Findings check_collectors(Subject& subject) {
  if (subject.in_recovery) return {not_checked("collectors connect to the primary, not to this standby")};
  const auto& settings = *subject.settings;
  const auto limits = limits_of(subject);
  Findings findings;
  std::set<int> collectors;
  const auto queues = status::shown_queues(*subject.connection, settings);
  for (const auto& queue : queues) {
    if (!has_queue(*subject.connection, queue)) return {not_checked("there is no queue " + queue)};
    const auto status = status::read_queue_status(*subject.connection, queue);
    for (const auto& collector : status.collectors)
      collectors.insert(collector.session.pid);
    for (const auto& found : health::judge_queue(status, limits)) {
      if (!is_of_this_check(found, settings)) continue;
      auto finding = finding_of(found);
      if (queues.size() > 1) finding.reason = "queue " + queue + ": " + found.text;
      findings.push_back(std::move(finding));
    }
  }
  const auto count = static_cast<std::int64_t>(collectors.size());
  return or_fine(std::move(findings),
                 count == 1 ? "1 is connected" : fmt::format("{} are connected", with_thousands(count)));
}

Findings check_batches(Subject& subject) {
  constexpr std::size_t shown = 5;
  Findings findings;
  const auto rows = subject.connection->run(R"(
SELECT id, queue, attempts FROM mailroom_batches WHERE dead_at IS NOT NULL AND emitted_at IS NULL)");
  std::map<std::int64_t, db::Row> row_of;
  std::vector<status::DeadBatch> dead;
  for (const auto& row : rows) {
    dead.push_back({.id = row.number("id")});
    row_of.emplace(dead.back().id, row);
  }
  subject.connection->transact([&](pqxx::work& transaction) { status::keep_unsettled(transaction, dead); });
  const auto home = db::quoted_schema(*subject.connection);
  for (const auto& batch : std::span(dead).first(std::min(dead.size(), shown))) {
    const auto& row = row_of.at(batch.id);
    findings.push_back(
        warning(fmt::format("batch {} of the queue {} was dead-lettered after {} attempts: {} tokens were "
                            "not emitted",
                            batch.id, row.text("queue"), row.text("attempts"), with_thousands(batch.tokens)),
                {status::replay_batch(row.text("queue"), batch.id, home)},
                fmt::format("mailroom audit batch:{} shows its attempts", batch.id)));
  }
  if (dead.size() > shown) {
    findings.push_back(warning(fmt::format("{} batches in total were dead-lettered", dead.size()), {},
                               "mailroom audit --since 30d shows them"));
  }
  return or_fine(std::move(findings),
                 rows.empty() ? "no batch was dead-lettered" : "no batch that was dead-lettered needs care");
}

Findings check_home(Subject& subject) {
  const auto home = queue::read_home(*subject.connection);
  if (!home.problem.empty())
    return {failure(
        fmt::format("nothing is sent from this database: {}", home.problem), {},
        "right for a copy that must mail nobody; mailroom adopt makes it the one that mails are sent from")};
  const auto here = host_name();
  const auto hosts = joined(home.hosts, ", ");
  if (!home.hosts.empty() && std::ranges::find(home.hosts, here) == home.hosts.end())
    return {
        warning(fmt::format("only consumers on {} may serve this database, and this is {}", hosts, here), {},
                fmt::format("run consumers on {}; there, mailroom adopt --host names others too", hosts))};
  Findings foreign;
  for (const auto& consumer : subject.connection->alone(queue::read_foreign_consumers))
    foreign.push_back(warning(queue::foreign_consumer_text(consumer), {status::end_session(consumer.pid)}));
  if (!foreign.empty()) return foreign;
  return {fine(home.hosts.empty() ? "mails are sent from this database"
                                  : "mails are sent from this database, by consumers on " + hosts)};
}

}  // namespace mailroom::doctor
