// Gives every event the same keys, with null where an event has no such value.

#include <algorithm>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/events/event_text.hpp"
#include "cmd/message/message_report.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

/// `wrong_status`, as the counts of skipped tokens name it.
Json reason_json(std::string reason) {
  std::replace(reason.begin(), reason.end(), ' ', '_');
  return text_or_null<Json>(reason);
}

Json clock_json(const std::optional<Moment>& moment) {
  if (!moment || !date_text(*moment)) return nullptr;
  return precise_moment_text(*moment);
}

Json batch_details(const queue::BatchRecord& batch, feed::EventKind kind) {
  if (kind == feed::EventKind::abandoned) {
    return {{"size", batch.size},
            {"attempt", batch.attempts},
            {"collector", batch.collector},
            {"claimed_at", clock_json(batch.claimed_at)}};
  }
  return {{"size", batch.size},
          {"emitted", batch.emitted},
          {"skipped", skipped_json(batch.skipped)},
          {"attempts", batch.attempts},
          {"collector", batch.collector},
          {"key", text_or_null<Json>(batch.key)},
          {"claimed_at", clock_json(batch.claimed_at)},
          {"emitted_at", clock_json(batch.emitted_at)},
          {"dead_at", clock_json(batch.dead_at)}};
}

/// Sets the keys that the row of an event has; event_json() gives every event all keys.
struct EventKeys {
  Json& object;
  feed::EventKind kind;

  void operator()(const accounts::AccountRecord& account) { object["details"] = {{"login", account.login}}; }
  void operator()(const feed::StoredToken& token) {
    object["tokens"] = {token.id};
    object["details"] = {{"action", token.action}, {"expires_at", moment_json<Json>(token.expires_at)}};
    if (token.message) object["details"]["message"] = *token.message;
  }
  void operator()(const feed::TokenSkip& skip) {
    object["tokens"] = {skip.token.id};
    object["batch"] = skip.batch;
    object["details"] = {{"reason", reason_json(skip.reason)}, {"reason_certain", skip.reason_certain}};
  }
  void operator()(const feed::DeliveryAttempt& delivery) {
    object["tokens"] = {delivery.token.id};
    add_delivery_outcome(object["details"], delivery);
  }
  void operator()(const queue::BatchRecord& batch) {
    object["tokens"] = ids_json(batch.tokens);
    object["batch"] = batch.id;
    object["actor"] = batch.claimed_by;
    object["details"] = batch_details(batch, kind);
  }
  void operator()(const feed::Operation& operation) {
    object["tokens"] = ids_json(operation.tokens);
    add_actor(operation);
    object["details"] = parse_ordered_json(sound_utf8(operation.details));
  }
  void operator()(const schema::SchemaChange& change) {
    add_actor(change);
    object["details"] = {{"version", change.version},
                         {"name", change.name},
                         {"direction", change.direction},
                         {"duration_ms", change.duration.count()}};
  }
  template <typename Row>
  void add_actor(const Row& row) {
    object["actor"] = row.actor;
    object["db_user"] = row.db_user;
    object["reason"] = text_or_null<Json>(row.reason);
  }
};

Json event_json(const feed::Event& event) {
  Json object{{"type", "event"},
              {"time", time_json(event)},
              {"event", event_name(event)},
              {"account", nullptr},
              {"tokens", Json::array()},
              {"batch", nullptr},
              {"queue", text_or_null<Json>(event.queue())},
              {"actor", nullptr},
              {"db_user", nullptr},
              {"reason", nullptr},
              {"details", Json::object()}};
  if (const auto* account = event.account()) object["account"] = account->id;
  std::visit(EventKeys{object, event.kind}, event.record);
  return object;
}

std::string lines_of(const Json& summary, const audit::Timeline& timeline) {
  auto text = json_text(summary) + "\n";
  for (const auto& event : timeline.entries)
    text += json_text(event_json(event)) + "\n";
  return text;
}

Json delivery_json(const audit::TokenDelivery& status) {
  const auto& delivery = status.delivery;
  Json object{{"queue", delivery.queue},
              {"accepted", status.accepted},
              {"perhaps", status.perhaps},
              {"accepted_at", clock_json(delivery.accepted_at)},
              {"attempts", delivery.counted},
              {"last_at", clock_json(delivery.last().at)},
              {"not_before", clock_json(delivery.not_before)},
              {"batch", delivery.batch}};
  add_delivery_outcome(object, delivery.last());
  object["reports"] = Json::array();
  for (const auto& report : delivery.reports) {
    Json line{{"at", clock_json(report.at)}};
    add_delivery_outcome(line, report);
    object["reports"].push_back(std::move(line));
  }
  return object;
}

/// Sets the outcome of a token in all queues.
void add_outcome(Json& object, const audit::TokenReport& report) {
  const auto& status = report.status;
  auto emitted = status.times;
  auto maybe = status.maybe;
  auto next = status.next;
  auto batch = status.batch ? Json(status.batch->id) : Json(nullptr);
  for (const auto& delivery : report.deliveries) {
    emitted += delivery.accepted;
    maybe += delivery.maybe ? 1 : 0;
    if (!next) next = delivery.next;
    if (batch.is_null()) batch = delivery.delivery.batch;
  }
  object["outcome"] =
      fate::outcome_name(report.deliveries.empty() ? status.outcome : report.deliveries.front().outcome);
  object["emitted"] = emitted;
  object["maybe_emitted"] = maybe;
  object["next"] = next ? Json(fate::outcome_name(*next)) : Json(nullptr);
  object["batch"] = std::move(batch);
}

Json of_queue_json(const audit::TokenReport& report) {
  Json object{{"queue", report.queue}};
  add_outcome(object, report);
  object["reason"] = reason_json(report.status.reason);
  object["reason_certain"] = report.status.reason_certain;
  return object;
}

Json token_report_json(const audit::TokenReport& report, Moment now) {
  const auto& token = report.token;
  Json object{{"id", token.id},
              {"exists", token.exists},
              {"action", text_or_null<Json>(token.action)},
              {"address", text_or_null<Json>(token_address(report))},
              {"state", text_or_null<Json>(token.state)},
              {"created_at", nullptr},
              {"expires_at", nullptr},
              {"consumed_at", nullptr},
              {"trace_id", text_or_null<Json>(token.trace_id)}};
  add_outcome(object, report);
  object["reason"] = reason_json(report.status.reason);
  object["reason_certain"] = report.status.reason_certain;
  object["id_was_anothers"] = token.id_was_anothers;
  object["queues"] = array_json<Json>(report.by_queue, of_queue_json);
  object["deliveries"] = Json::array();
  for (const auto& delivery : report.deliveries)
    object["deliveries"].push_back(delivery_json(delivery));
  object["sentence"] = status_text(report, now);
  if (!token.exists) return object;
  if (token.consumed_at) object["consumed_at"] = moment_json<Json>(*token.consumed_at);
  object["created_at"] = moment_json<Json>(token.created_at);
  object["expires_at"] = moment_json<Json>(token.expires_at);
  return object;
}

Json account_json(const audit::History& history) {
  if (history.account_id == 0) return nullptr;
  Json object{{"id", history.account_id}, {"login", nullptr}, {"email", nullptr}, {"status", nullptr}};
  if (!history.account) return object;
  object["login"] = history.account->login;
  object["email"] = history.account->email;
  object["status"] = history.account->status;
  return object;
}

Json totals_json(const audit::QueueTotals& queue) {
  return {{"queue", queue.queue},       {"batches", queue.batches},
          {"emitted", queue.emitted},   {"skipped", skipped_json(queue.skipped)},
          {"repeated", queue.repeated}, {"open", queue.open},
          {"dead", queue.dead}};
}

}  // namespace

std::string render_json(const audit::History& history) {
  auto tokens = Json::array();
  for (const auto& report : history.tokens)
    tokens.push_back(token_report_json(report, history.now));
  const auto* subject = history.batch               ? "batch"
                        : history.is_of_account     ? "account"
                        : !history.messages.empty() ? "message"
                                                    : "token";
  const Json summary{
      {"type", "summary"},
      {"subject", subject},
      {"account", account_json(history)},
      {"former_address", text_or_null<Json>(history.former_address)},
      {"batch", history.batch ? Json(history.batch->id) : Json(nullptr)},
      {"messages", array_json<Json>(history.messages, summary_json)},
      {"tokens_total", history.tokens_total},
      {"tokens", std::move(tokens)},
      {"next_steps", array_json<Json>(history.next,
                                      [](const audit::NextStep& step) {
                                        return Json{{"text", step.text}, {"command", step.command}};
                                      })},
      {"omitted", history.timeline.omitted}};
  return lines_of(summary, history.timeline);
}

std::string render_json(const audit::Overview& overview) {
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

}  // namespace mailroom::cmd
