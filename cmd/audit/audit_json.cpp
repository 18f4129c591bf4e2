#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/moment.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/audit/audit_text.hpp"

namespace mailroom {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json time_json(const std::optional<std::int64_t>& microseconds) {
  if (!microseconds || !date_text(*microseconds / microseconds_a_second)) return nullptr;
  return precise_moment_text(*microseconds);
}

Json seconds_json(const std::optional<std::int64_t>& seconds) {
  return seconds ? moment_json<Json>(*seconds) : Json(nullptr);
}

Json ids_json(const std::vector<IdRange>& ranges) {
  auto ids = Json::array();
  for (const auto& range : ranges) {
    for (auto id = range.first; id < range.end; ++id)
      ids.push_back(id);
  }
  return ids;
}

Json batch_details(const BatchRecord& batch) {
  return {{"size", batch.size},
          {"emitted", batch.emitted},
          {"skipped",
           {{"expired", batch.skipped_expired},
            {"consumed", batch.skipped_consumed},
            {"wrong_status", batch.skipped_status},
            {"invalid", batch.skipped_invalid}}},
          {"attempts", batch.attempts},
          {"collector", batch.collector},
          {"claimed_at", time_json(batch.claimed_at)},
          {"emitted_at", time_json(batch.emitted_at)},
          {"dead_at", time_json(batch.dead_at)}};
}

/// Sets the keys that an event has; entry_json() gives every entry all keys.
struct EntryJson {
  Json object;

  void operator()(const AccountChange& change) {
    object["account"] = change.account;
    object["details"] = {{"login", change.login}};
  }
  void operator()(const TokenChange& change) {
    object["account"] = change.account;
    object["tokens"] = {change.token};
    object["details"] = {{"action", change.action}, {"expires_at", moment_json<Json>(change.expires_at)}};
  }
  void operator()(const TokenSkip& skip) {
    object["account"] = skip.account;
    object["tokens"] = {skip.token};
    object["batch"] = skip.batch;
    object["queue"] = skip.queue;
    object["details"] = {{"reason", or_null(skip.reason)}, {"reason_certain", skip.reason_certain}};
  }
  void operator()(const BatchRecord& batch) {
    object["tokens"] = ids_json(batch.tokens);
    object["batch"] = batch.id;
    object["queue"] = batch.queue;
    object["actor"] = batch.claimed_by;
    object["details"] = batch_details(batch);
  }
  void operator()(const Abandonment& abandonment) {
    const auto& claim = abandonment.claim;
    object["tokens"] = ids_json(claim.tokens);
    object["batch"] = claim.id;
    object["queue"] = claim.queue;
    object["actor"] = claim.claimed_by;
    object["details"] = {{"size", claim.size},
                         {"attempt", claim.attempts},
                         {"collector", claim.collector},
                         {"claimed_at", time_json(claim.claimed_at)}};
  }
  void operator()(const Operation& operation) {
    if (operation.account) object["account"] = *operation.account;
    object["tokens"] = ids_json(operation.tokens);
    object["queue"] = or_null(operation.queue);
    object["actor"] = operation.actor;
    object["db_user"] = operation.db_user;
    object["reason"] = or_null(operation.reason);
    object["details"] = Json::parse(sound_utf8(operation.details));
  }
  void operator()(const SchemaChange& change) {
    object["actor"] = change.actor;
    object["db_user"] = change.db_user;
    object["reason"] = or_null(change.reason);
    object["details"] = {{"version", change.version},
                         {"name", change.name},
                         {"direction", change.direction},
                         {"duration_ms", change.duration_ms}};
  }
};

Json entry_json(const TimelineEntry& entry) {
  EntryJson json{
      {{"type", "event"},
       {"time", entry.precise ? time_json(entry.at) : moment_json<Json>(entry.at / microseconds_a_second)},
       {"event", what_text(entry.what)},
       {"account", nullptr},
       {"tokens", Json::array()},
       {"batch", nullptr},
       {"queue", nullptr},
       {"actor", nullptr},
       {"db_user", nullptr},
       {"reason", nullptr},
       {"details", Json::object()}}};
  std::visit(json, entry.what);
  return json.object;
}

/// Replaces invalid UTF-8, which a database without an encoding may hold.
std::string line_of(const Json& object) {
  return json_text(object) + "\n";
}

std::string lines_of(const Json& summary, const Timeline& timeline) {
  auto text = line_of(summary);
  for (const auto& entry : timeline.entries)
    text += line_of(entry_json(entry));
  return text;
}

Json token_report_json(const TokenReport& report, std::int64_t now) {
  const auto& token = report.token;
  const auto& status = report.status;
  Json object{{"id", token.id},
              {"exists", token.exists},
              {"action", or_null(token.action)},
              {"state", or_null(token.state)},
              {"created_at", nullptr},
              {"expires_at", nullptr},
              {"consumed_at", seconds_json(token.consumed_at)},
              {"outcome", outcome_name(status.outcome)},
              {"emitted", status.times},
              {"maybe_emitted", status.maybe},
              {"next", status.next ? Json(outcome_name(*status.next)) : Json(nullptr)},
              {"batch", status.batch ? Json(status.batch->id) : Json(nullptr)},
              {"reason", or_null(status.reason)},
              {"reason_certain", status.reason_certain},
              {"id_was_anothers", token.id_was_anothers},
              {"sentence", status_text(report, now)}};
  if (!token.exists) return object;
  object["created_at"] = moment_json<Json>(token.created_at);
  object["expires_at"] = moment_json<Json>(token.expires_at);
  return object;
}

Json account_json(const History& history) {
  if (history.account_id == 0) return nullptr;
  Json object{{"id", history.account_id}, {"login", nullptr}, {"email", nullptr}, {"status", nullptr}};
  if (!history.account) return object;
  object["login"] = history.account->login;
  object["email"] = history.account->email;
  object["status"] = history.account->status;
  return object;
}

Json totals_json(const QueueTotals& queue) {
  return {{"queue", queue.queue},
          {"batches", queue.batches},
          {"emitted", queue.emitted},
          {"skipped",
           {{"expired", queue.expired},
            {"consumed", queue.consumed},
            {"wrong_status", queue.wrong_status},
            {"invalid", queue.invalid}}},
          {"repeated", queue.repeated},
          {"open", queue.open},
          {"dead", queue.dead}};
}

}  // namespace

std::string render_json(const History& history) {
  auto tokens = Json::array();
  for (const auto& report : history.tokens)
    tokens.push_back(token_report_json(report, history.now));
  const auto* subject = history.batch ? "batch" : history.is_of_account ? "account" : "token";
  const Json summary{{"type", "summary"},
                     {"subject", subject},
                     {"account", account_json(history)},
                     {"batch", history.batch ? Json(history.batch->id) : Json(nullptr)},
                     {"tokens_total", history.tokens_total},
                     {"tokens", std::move(tokens)},
                     {"omitted", history.timeline.omitted}};
  return lines_of(summary, history.timeline);
}

std::string render_json(const Overview& overview) {
  auto queues = Json::array();
  for (const auto& queue : overview.queues)
    queues.push_back(totals_json(queue));
  const Json summary{{"type", "summary"},
                     {"subject", "everything"},
                     {"since", moment_text(overview.period.since)},
                     {"until", moment_text(std::min(overview.period.until, overview.now))},
                     {"queues", std::move(queues)},
                     {"omitted", overview.timeline.omitted}};
  return lines_of(summary, overview.timeline);
}

}  // namespace mailroom
