// The SQL that says of each chosen token whether it is sent again, and whether it was taken before.

#include "replay/resend.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/wording.hpp"
#include "db/values.hpp"
#include "replay/chosen_tokens.hpp"

namespace mailroom::replay {
namespace {

constexpr std::array<std::string_view, resend_choices> choice_names{
    "sent", "waiting", "expired", "consumed", "wrong status", "replaced", "revoked", "not taken"};

/// Judges the tokens that $2 selects in queue $1. $3: the extension in seconds, $4: whether they are named,
/// $5: since when another outcome counts, in microseconds, or null. The batches that emitted them are read
/// once, between the first and the last of them. OFFSET 0 makes the planner use the index on the account.
constexpr const char* judge_sql = R"(
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now),
queue AS MATERIALIZED (
  SELECT s.cursor, mailroom_queue_actions($1) AS actions, coalesce((
    SELECT range_agg(held.g) FROM (
      SELECT unnest(h.ids) FROM mailroom_gaps h WHERE h.id = ANY (s.gap_ids)
      UNION ALL
      SELECT unnest(mailroom_batch_ids(b.ids, b.ids_mask)) FROM mailroom_batches b
      WHERE b.queue = $1 AND b.emitted_at IS NULL AND b.dead_at IS NULL) held (g)), '{{}}') AS held
  FROM mailroom_queue_state($1) s),
picked AS MATERIALIZED (SELECT t.id, t.account, t.action, t.consumed_at, t.expires_at, t.created_at {}),
chosen AS MATERIALIZED (SELECT p.*, a.status FROM picked p LEFT JOIN accounts a ON a.id = p.account),
emitted AS MATERIALIZED (
  SELECT mailroom_emitted_ids($1, min(created_at), int8range(min(id), max(id), '[]')) AS ids FROM chosen HAVING count(*) > 0),
revoked AS MATERIALIZED (
  SELECT o.at, mailroom_operation_ids(o.kind, o.details) AS ids FROM mailroom_operations o WHERE o.kind = 'revoke')
SELECT c.id,
  CASE
    WHEN NOT mailroom_takes(queue.actions, c.action) THEN 'not taken'
    WHEN c.consumed_at IS NOT NULL THEN 'consumed'
    WHEN EXISTS (SELECT FROM revoked r WHERE r.ids @> c.id AND r.at >= to_timestamp(c.created_at)) THEN 'revoked'
    WHEN mailroom_token_state(c.action, NULL, clock.now + 1, c.status, clock.now) <> 'due' THEN 'wrong status'
    WHEN NOT $4::boolean AND EXISTS (
      SELECT FROM (SELECT id, action FROM tokens WHERE tokens.account = c.account OFFSET 0) n
      WHERE n.id > c.id AND n.action = c.action) THEN 'replaced'
    WHEN c.expires_at <= clock.now AND $3::bigint = 0 THEN 'expired'
    WHEN c.id > queue.cursor OR c.id <@ queue.held
      OR d.last_at > to_timestamp($5::numeric / 1000000) THEN 'waiting'
    ELSE 'sent'
  END AS choice,
  c.expires_at <= clock.now AS is_expired,
  CASE
    WHEN d.accepted_at IS NOT NULL OR d.state = 'accepted' THEN 'accepted'
    WHEN d.unknowns > 0 OR d.state = 'unknown' THEN 'maybe'
    WHEN d.state IS NULL AND c.id <@ emitted.ids THEN 'emitted'
    ELSE ''
  END AS before
FROM clock, queue, emitted, chosen c LEFT JOIN LATERAL (
  SELECT * FROM mailroom_deliveries
  WHERE mailroom_deliveries.queue = $1 AND mailroom_deliveries.token = c.id
    AND mailroom_deliveries.last_at >= to_timestamp(c.created_at)
  LIMIT 1) d ON true
ORDER BY c.id)";

void count_before(SentBefore& before, std::string_view text) {
  if (text == "accepted") ++before.accepted;
  if (text == "maybe") ++before.maybe;
  if (text == "emitted") ++before.emitted;
}

/// The plan, and the tokens whose expiry it moves.
struct Judged {
  ResendPlan plan;
  std::vector<std::int64_t> revived;
};

Judged judge(pqxx::transaction_base& transaction, const ResendRequest& request) {
  Judged judged;
  judged.plan.queue = request.queue;
  const auto sql = fmt::format(judge_sql, chosen_tokens_sql(request.selection, "$1"));
  const auto chosen_at =
      request.chosen_at ? std::optional(request.chosen_at->time_since_epoch().count()) : std::nullopt;
  for (const auto& row :
       db::Connection::execute(transaction, sql, request.queue, request.selection.parameter(),
                               request.extension.count(), request.by_token, chosen_at)) {
    const auto id = row.number("id");
    const auto place = std::find(choice_names.begin(), choice_names.end(), row.view("choice"));
    const auto choice = static_cast<ResendChoice>(place - choice_names.begin());
    ++judged.plan.counts.at(static_cast<std::size_t>(choice));
    const bool is_emitted = choice == ResendChoice::sent || choice == ResendChoice::waiting;
    if (is_emitted && row.flag("is_expired")) judged.revived.push_back(id);
    if (choice != ResendChoice::sent) continue;
    judged.plan.sent.push_back(id);
    count_before(judged.plan.before, row.text("before"));
  }
  judged.plan.revived = static_cast<std::int64_t>(judged.revived.size());
  return judged;
}

// $1 queue, $2 the tokens.
const std::string lately_sql = fmt::format(R"(
WITH recent AS (
  SELECT o.at, mailroom_operation_ids(o.kind, o.details) * $2::int8multirange AS ids FROM mailroom_operations o
  WHERE o.queue = $1 AND o.kind = 'replay' AND o.at > clock_timestamp() - interval '1 hour')
SELECT coalesce((SELECT sum(upper(g) - lower(g)) FROM unnest(range_agg(r)) g), 0)::bigint AS tokens, {} AS at_us
FROM recent, unnest(ids) r)",
                                           db::microseconds_sql("max(at)"));

ResentLately read_resent_lately(pqxx::transaction_base& transaction, const ResendPlan& plan) {
  if (plan.sent.empty()) return {};
  const auto row = db::Connection::execute(transaction, lately_sql, plan.queue,
                                           selection::multirange_of(selection::to_id_ranges(plan.sent)))[0];
  if (row.is_null("at_us")) return {};
  return {.tokens = row.number("tokens"), .at = row.moment<std::chrono::microseconds>("at_us")};
}

void revive(pqxx::transaction_base& transaction, const std::vector<std::int64_t>& tokens,
            std::chrono::seconds extension) {
  if (tokens.empty()) return;
  db::Connection::execute(
      transaction,
      "UPDATE tokens SET expires_at = floor(extract(epoch FROM clock_timestamp()))::bigint + "
      "$2::bigint WHERE id = ANY ($1::bigint[])",
      db::array_text(tokens), extension.count());
}

/// Judges all under the locks of the queues, which are taken in the order of their names.
std::vector<Judged> judge_all(pqxx::transaction_base& transaction,
                              const std::vector<ResendRequest>& requests) {
  std::set<std::string> queues;
  for (const auto& request : requests)
    queues.insert(request.queue);
  for (const auto& queue : queues)
    db::Connection::execute(transaction, "SELECT mailroom_lock_queue($1)", queue);
  std::vector<Judged> judged;
  for (const auto& request : requests)
    judged.push_back(judge(transaction, request));
  return judged;
}

}  // namespace

std::string_view resend_choice_text(ResendChoice choice) {
  return choice_names.at(static_cast<std::size_t>(choice));
}

Moment time_of_choice(db::Connection& connection) {
  return connection.run("SELECT " + db::microseconds_sql("clock_timestamp()"))
      .moment<std::chrono::microseconds>();
}

ResendPlan plan_resend(db::Connection& connection, const ResendRequest& request) {
  return connection.alone([&](pqxx::transaction_base& transaction) {
    auto plan = judge(transaction, request).plan;
    plan.lately = read_resent_lately(transaction, plan);
    return plan;
  });
}

std::int64_t carry_out_resend(db::Connection& connection, const std::vector<ResendRequest>& requests,
                              std::int64_t max, const queue::OperationAuthor& author,
                              const std::string& channel) {
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    const auto judged = judge_all(transaction, requests);
    std::int64_t sent = 0;
    for (const auto& each : judged)
      sent += static_cast<std::int64_t>(each.plan.sent.size());
    if (sent > max) {
      throw Error(
          ExitCode::declined,
          fmt::format("this would send {} now, and no more than {} are allowed", counted(sent, "token"), max),
          "raise the limit with --max");
    }
    sent = 0;
    for (std::size_t i = 0; i < judged.size(); ++i) {
      revive(transaction, judged[i].revived, requests[i].extension);
      auto details = selection_details(requests[i].asked);
      if (!judged[i].revived.empty()) details["revived"] = judged[i].revived.size();
      sent +=
          replay_tokens(transaction, requests[i].queue, judged[i].plan.sent, plain_json(details), channel);
    }
    return sent;
  });
}

}  // namespace mailroom::replay
