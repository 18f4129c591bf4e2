// The output of status for programs.

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "cmd/status/status_report.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

Json seconds_json(const std::optional<Milliseconds>& duration) {
  if (!duration) return nullptr;
  return static_cast<double>(duration->count()) / 1000;
}

Json session_json(const status::ServerSession& session) {
  // This user may not read some sessions.
  const auto readable = [&](const std::string& text) {
    return session.readable ? Json(text) : Json(nullptr);
  };
  return {{"pid", session.pid},
          {"application", session.application},
          {"user", session.user},
          {"address", readable(session.address)},
          {"readable", session.readable},
          {"state", readable(session.state)},
          {"wait", readable(session.wait)},
          {"command", readable(session.command)},
          {"connected_seconds", seconds_json(session.connected_for)},
          {"transaction_seconds", seconds_json(session.transaction_age)},
          {"silent_seconds", seconds_json(session.silent_for)}};
}

Json pending_json(const status::QueueStatus& queue) {
  const auto& pending = queue.pending;
  const auto& oldest = pending.oldest_created_at;
  Json object{{"tokens", pending.total()}, {"estimated", pending.estimated}};
  for (const auto& [outcome, tokens] : pending.by_outcome())
    object[fate::outcome_name(outcome)] = tokens;
  object["oldest_created_at"] = oldest ? moment_json<Json>(*oldest) : Json(nullptr);
  object["oldest_estimated"] = pending.oldest_estimated;
  object["lag_seconds"] = seconds_json(queue.lag());
  return object;
}

Json collector_json(const status::AttachedCollector& collector) {
  auto object = session_json(collector.session);
  object["queue"] = optional_json<Json>(collector.queue);
  object["key"] = text_or_null<Json>(collector.key);
  return object;
}

Json open_batches_json(const status::QueueStatus& queue) {
  return array_json<Json>(queue.open_batches, [&](const status::OpenBatch& batch) -> Json {
    return {{"batch", batch.id},
            {"tokens", batch.tokens},
            {"attempts", batch.attempts},
            {"collector", batch.collector},
            {"claimed_by", batch.claimed_by},
            {"open_seconds", seconds_json(batch.age)},
            {"session_lives", queue.on_standby ? Json(nullptr) : Json(batch.session_lives)}};
  });
}

Json dead_json(const status::DeadBatch& batch) {
  return {{"batch", batch.id},
          {"tokens", batch.tokens},
          {"claimed_by", batch.claimed_by},
          {"dead_seconds", seconds_json(batch.age)}};
}

Json holder_json(const status::GapHolder& holder) {
  const bool prepared = holder.session.pid == 0;
  Json object = prepared ? Json{{"gid", holder.gid},
                                {"user", holder.session.user},
                                {"transaction_seconds", seconds_json(holder.session.transaction_age)}}
                         : session_json(holder.session);
  object["writes_tokens"] = holder.writes_tokens;
  object["ids"] = holder.ids;
  return object;
}

Json deliveries_json(const status::DeliveryStatus& deliveries) {
  Json last_hour = Json::object();
  for (const auto& [outcome, count] : deliveries.last_hour)
    last_hour[fate::outcome_name(outcome)] = count;
  const auto sink_json = [](const status::UnavailableSink& sink) -> Json {
    return {{"name", sink.name},
            {"failures", sink.failures},
            {"unavailable_seconds", seconds_json(sink.lasts)},
            {"probe_in_seconds", seconds_json(sink.probe_in)},
            {"reason", sink.reason}};
  };
  return {{"last_hour", last_hour},
          {"perhaps_twice", deliveries.perhaps_twice},
          {"deferred", deliveries.deferred.tokens},
          {"next_in_seconds", seconds_json(deliveries.deferred.next_in)},
          {"unavailable_sinks", array_json<Json>(deliveries.sinks, sink_json)}};
}

Json came_back_json(const status::CameBack& reports) {
  if (!reports.is_known) return nullptr;
  return {{"hard", reports.hard},
          {"other", reports.bounced},
          {"complaints", reports.complaints},
          {"unsubscribed", reports.unsubscribed},
          {"delivered", reports.delivered},
          {"unmatched", reports.unmatched}};
}

Json scheduled_json(const status::QueueStatus& queue) {
  const auto& scheduled = queue.scheduled;
  if (!scheduled.is_known) return nullptr;
  return {{"messages", scheduled.messages},
          {"estimated", scheduled.estimated},
          {"next_at", scheduled.next_at ? moment_json<Json>(*scheduled.next_at) : Json(nullptr)},
          {"overdue_seconds", seconds_json(scheduled.overdue(queue.now))}};
}

Json asked_json(const messages::RecentRoles& asked) {
  if (!asked.is_known) return nullptr;
  return array_json<Json>(asked.roles, [](const messages::RoleCount& count) -> Json {
    return {{"role", count.role}, {"messages", count.all.messages}, {"recipients", count.all.recipients}};
  });
}

Json budget_status_json(const queue::Budget& budget) {
  return {{"name", budget.name},
          {"rate", config::format_rate(budget.paced.rate)},
          {"burst", budget.paced.burst},
          {"left", budget.left()},
          {"next_in_seconds", seconds_json(budget.wait_for(1))}};
}

Json pause_json(const std::optional<queue::QueuePause>& pause) {
  if (!pause) return nullptr;
  return {{"since", moment_text(pause->since)},
          {"seconds", seconds_json(pause->lasts)},
          {"actor", pause->actor},
          {"reason", text_or_null<Json>(pause->reason)}};
}

Json finding_json(const health::QueueFinding& finding) {
  return {{"severity", health::severity_name(finding.severity)},
          {"code", finding.code},
          {"text", finding.text},
          {"fix", text_or_null<Json>(finding.fix)},
          {"hint", text_or_null<Json>(finding.hint)}};
}

Json report_json(const StatusReport& report) {
  const auto& queue = report.queue;
  return {
      {"queue", queue.queue},
      {"at", moment_text(queue.now)},
      {"health", health::severity_name(health::worst(report.findings))},
      {"cursor", queue.cursor},
      {"newest_id", queue.newest},
      {"pending", pending_json(queue)},
      {"scheduled", scheduled_json(queue)},
      {"emitted",
       {{"tokens", queue.emissions.total()},
        {"seconds", seconds_json(queue.emissions.known)},
        {"per_second", queue.emissions.per_second()}}},
      {"standby", queue.on_standby},
      {"collectors", queue.on_standby ? Json(nullptr) : array_json<Json>(queue.collectors, collector_json)},
      {"open_batches", open_batches_json(queue)},
      {"dead", array_json<Json>(queue.dead, dead_json)},
      {"gaps",
       {{"ids", queue.gap_ids},
        {"replay_ids", queue.replay_ids},
        {"waiting_for", array_json<Json>(queue.gap_holders, holder_json)}}},
      {"deliveries", deliveries_json(queue.deliveries)},
      {"came_back", came_back_json(queue.came_back)},
      {"asked_last_hour", asked_json(report.asked)},
      {"actions",
       queue.record.properties.actions.empty() ? Json(nullptr) : Json(queue.record.properties.actions)},
      {"priority", queue.record.properties.priority},
      {"budgets", array_json<Json>(queue.record.budgets, budget_status_json)},
      {"paused", pause_json(queue.record.pause)},
      {"schema", {{"version", report.schema_version}, {"newest", report.newest_schema_version}}},
      {"findings", array_json<Json>(report.findings, finding_json)}};
}

}  // namespace

std::string render_json(const StatusOutage& outage) {
  Json object = Json::object();
  if (!outage.queue.empty()) object["queue"] = outage.queue;
  object["at"] = moment_text(outage.now);
  object["health"] = health::severity_name(health::Severity::failure);
  object["findings"] = Json::array(
      {finding_json({health::Severity::failure, "unreachable",
                     fmt::format("no answer for {}: {}", status::age_text(outage.lasts), outage.reason)})});
  return json_text(object) + "\n";
}

std::string render_json(const StatusOverview& overview) {
  if (overview.is_single()) return json_text(report_json(overview.queues.front())) + "\n";
  const Json object{{"queues", array_json<Json>(overview.queues, report_json)},
                    {"health", health::severity_name(health::worst(findings_of(overview)))}};
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
