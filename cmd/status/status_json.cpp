#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/moment.hpp"
#include "cmd/status/status_report.hpp"

namespace mailroom {
namespace {

using Json = nlohmann::ordered_json;

Json seconds_json(const std::optional<Milliseconds>& duration) {
  if (!duration) return nullptr;
  return static_cast<double>(duration->count()) / 1000;
}

/// Null if this user may not read the session.
Json readable_text(const ServerSession& session, const std::string& text) {
  if (!session.readable) return nullptr;
  return text;
}

Json session_json(const ServerSession& session) {
  return {{"pid", session.pid},
          {"application", session.application},
          {"user", session.user},
          {"address", readable_text(session, session.address)},
          {"readable", session.readable},
          {"state", readable_text(session, session.state)},
          {"wait", readable_text(session, session.wait)},
          {"command", readable_text(session, session.command)},
          {"connected_seconds", seconds_json(session.connected_for)},
          {"transaction_seconds", seconds_json(session.transaction_age)},
          {"silent_seconds", seconds_json(session.silent_for)}};
}

Json pending_json(const QueueStatus& queue) {
  const auto& waiting = queue.waiting;
  Json object{{"tokens", waiting.total()},
              {"estimated", waiting.estimated},
              {"above_cursor", waiting.above_cursor},
              {"in_open_batches", waiting.in_open_batches},
              {"in_gaps", waiting.in_gaps},
              {"in_replay", waiting.in_replay},
              {"oldest_created_at", nullptr},
              {"oldest_estimated", waiting.oldest_estimated},
              {"lag_seconds", seconds_json(queue.lag())}};
  if (waiting.oldest_created_at) object["oldest_created_at"] = moment_json<Json>(*waiting.oldest_created_at);
  return object;
}

Json collectors_json(const QueueStatus& queue) {
  auto list = Json::array();
  for (const auto& collector : queue.collectors) {
    auto object = session_json(collector.session);
    object["queue"] = nullptr;
    if (collector.queue) object["queue"] = *collector.queue;
    object["key"] = nullptr;
    if (!collector.key.empty()) object["key"] = collector.key;
    list.push_back(std::move(object));
  }
  return list;
}

Json open_batches_json(const QueueStatus& queue) {
  auto list = Json::array();
  for (const auto& batch : queue.open_batches) {
    list.push_back({{"batch", batch.id},
                    {"tokens", batch.tokens},
                    {"attempts", batch.attempts},
                    {"collector", batch.collector},
                    {"claimed_by", batch.claimed_by},
                    {"open_seconds", seconds_json(batch.age)},
                    {"session_lives", queue.on_standby ? Json(nullptr) : Json(batch.session_lives)}});
  }
  return list;
}

Json dead_json(const QueueStatus& queue) {
  auto list = Json::array();
  for (const auto& batch : queue.dead) {
    list.push_back({{"batch", batch.id},
                    {"tokens", batch.tokens},
                    {"claimed_by", batch.claimed_by},
                    {"dead_seconds", seconds_json(batch.age)}});
  }
  return list;
}

Json holders_json(const QueueStatus& queue) {
  auto list = Json::array();
  for (const auto& holder : queue.gap_holders) {
    const bool prepared = holder.session.pid == 0;
    Json object = prepared ? Json{{"gid", holder.gid},
                                  {"user", holder.session.user},
                                  {"transaction_seconds", seconds_json(holder.session.transaction_age)}}
                           : session_json(holder.session);
    object["writes_tokens"] = holder.writes_tokens;
    object["ids"] = holder.ids;
    list.push_back(std::move(object));
  }
  return list;
}

Json findings_json(const StatusReport& report) {
  auto list = Json::array();
  for (const auto& finding : report.findings) {
    list.push_back({{"severity", severity_name(finding.severity)},
                    {"code", finding.code},
                    {"text", finding.text},
                    {"fix", finding.fix.empty() ? Json(nullptr) : Json(finding.fix)}});
  }
  return list;
}

}  // namespace

std::string render_json(const StatusOutage& outage) {
  const Json object{{"queue", outage.queue},
                    {"at", moment_text(outage.now)},
                    {"health", severity_name(Severity::failure)},
                    {"findings",
                     {{{"severity", severity_name(Severity::failure)},
                       {"code", "unreachable"},
                       {"text", fmt::format("no answer for {}: {}", age_text(outage.lasts), outage.reason)},
                       {"fix", ""}}}}};
  return json_text(object) + "\n";
}

std::string render_json(const StatusReport& report) {
  const auto& queue = report.queue;
  Json object{
      {"queue", queue.queue},
      {"at", moment_text(queue.now / 1000)},
      {"health", severity_name(worst(report.findings))},
      {"cursor", queue.cursor},
      {"newest_id", queue.newest},
      {"pending", pending_json(queue)},
      {"emitted",
       {{"tokens", queue.emissions.total()},
        {"seconds", seconds_json(queue.emissions.known)},
        {"per_second", queue.emissions.per_second()}}},
      {"standby", queue.on_standby},
      {"collectors", queue.on_standby ? Json(nullptr) : collectors_json(queue)},
      {"open_batches", open_batches_json(queue)},
      {"dead", dead_json(queue)},
      {"gaps",
       {{"ids", queue.gap_ids}, {"replay_ids", queue.replay_ids}, {"waiting_for", holders_json(queue)}}},
      {"schema", {{"version", report.schema_version}, {"newest", report.newest_schema_version}}},
      {"findings", findings_json(report)}};
  return json_text(object) + "\n";
}

}  // namespace mailroom
