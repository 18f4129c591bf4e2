// Reads tokens with their accounts, mailroom_operations and mailroom_deliveries.

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "db/values.hpp"
#include "fate/outcome.hpp"
#include "feed/event.hpp"

namespace mailroom::feed {
namespace {

/// Never reads the secret or the code.
const std::string token_columns = fmt::format(R"(
  t.id, t.action,
  mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                       (SELECT floor(extract(epoch FROM now()))::bigint)) AS state,
  t.created_at, t.expires_at, t.consumed_at, t.account, {} AS email, a.login, a.status, t.message,
  EXISTS (SELECT FROM mailroom_actions x WHERE x.action = t.action::text AND x.path IS NOT NULL) AS has_link,
  (SELECT m.reference FROM mailroom_messages m WHERE m.id = t.message) AS reference, {} AS consumed_as)",
                                              db::address_sql, db::consumed_as_sql);

std::vector<StoredToken> read_tokens(const db::Rows& rows) {
  std::vector<StoredToken> tokens;
  for (const auto& row : rows) {
    tokens.push_back({.id = row.number("id"),
                      .action = row.text("action"),
                      .state = row.text("state"),
                      .account = {.id = row.optional<std::int64_t>("account").value_or(0),
                                  .email = row.text("email"),
                                  .login = row.text("login"),
                                  .status = row.text("status")},
                      .created_at = row.moment<std::chrono::seconds>("created_at"),
                      .expires_at = row.moment<std::chrono::seconds>("expires_at"),
                      .consumed_at = row.optional_moment<std::chrono::seconds>("consumed_at"),
                      .message = row.optional<std::int64_t>("message"),
                      .reference = row.text("reference"),
                      .consumed_as = row.text("consumed_as"),
                      .has_link = row.flag("has_link")});
  }
  return tokens;
}

/// SQL for the ids of $1 (an int8multirange) that an operation replayed, revoked or moved the cursor over.
constexpr const char* touched = "$1::int8multirange * mailroom_operation_ids(kind, details)";

/// Sets what its details say. An operator may have recorded any.
void read_details(Operation& operation) {
  const auto details = try_parse_json(sound_utf8(operation.details));
  if (!details.is_object()) return;
  for (const auto& cut : details.value("cut", nlohmann::json::array())) {
    if (cut.is_object() && cut.contains("batch") && cut["batch"].is_number_integer())
      operation.cut_batches.push_back(cut["batch"].get<std::int64_t>());
  }
  const auto before = details.value("cursor_before", nlohmann::json());
  const auto after = details.value("cursor_after", nlohmann::json());
  operation.is_forward =
      operation.kind == EventKind::rewound && before.is_number() && after.is_number() && after > before;
}

/// `tokens` = the requested tokens, $1 of `condition`; `more` = its other parameters.
template <typename... More>
std::vector<Operation> read_operations(pqxx::transaction_base& transaction,
                                       const std::vector<selection::IdRange>& tokens,
                                       const std::string& condition, const More&... more) {
  const auto sql = fmt::format(R"(
SELECT o.id, {} AS at_us, kind, actor, db_user, reason, queue, account, a.email, a.login, details::text AS details,
  ({})::text AS tokens
FROM mailroom_operations o LEFT JOIN accounts a ON a.id = account
WHERE {})",
                               db::microseconds_sql("at"), touched, condition);
  std::vector<Operation> operations;
  for (const db::Row& row :
       db::Connection::execute(transaction, sql, selection::multirange_of(tokens), more...)) {
    Operation operation{.id = row.number("id"),
                        .at = row.moment<std::chrono::microseconds>("at_us"),
                        .kind = find_kind(row.text("kind")),
                        .actor = row.text("actor"),
                        .db_user = row.text("db_user"),
                        .reason = row.text("reason"),
                        .queue = row.text("queue"),
                        .details = row.text("details"),
                        .tokens = selection::parse_id_ranges(row.text("tokens"))};
    if (!row.is_null("account"))
      operation.account = {
          .id = row.number("account"), .email = row.text("email"), .login = row.text("login")};
    read_details(operation);
    operations.push_back(std::move(operation));
  }
  return operations;
}

// A row for each outcome, the present one last. Each range of ids is a condition of the primary key.
const std::string token_deliveries_sql = fmt::format(
    R"(
SELECT d.queue, d.token, d.attempts, d.unknowns, d.batch, {} AS not_before_us, {} AS accepted_us, {} AS at_us, e.state,
  e.sink, e.code, CASE WHEN e.n IS NULL AND e.state = 'accepted' AND (SELECT EXISTS (SELECT FROM mailroom_topics))
                       AND mailroom_was_under_way(d.token, d.address, d.last_at)
                  THEN concat_ws('; ', e.reply, 'it was on its way when its reader unsubscribed') ELSE e.reply END AS reply,
  e.address, (SELECT b.key FROM mailroom_batches b WHERE b.id = e.batch) AS key,
  e.message_id
FROM unnest($1::int8multirange) u (g) CROSS JOIN jobs j,
  LATERAL (SELECT * FROM mailroom_deliveries m
           WHERE m.queue = j.job_type AND m.token >= lower(u.g) AND m.token < upper(u.g)
           ORDER BY m.token LIMIT 2000000000) d,
  LATERAL (
    SELECT n, (a->>'at')::timestamptz, a->>'state', a->>'sink', (a->>'code')::integer, a->>'reply', a->>'address',
      (a->>'batch')::bigint, a->>'message_id'
    FROM jsonb_array_elements(d.earlier_attempts) WITH ORDINALITY AS earlier (a, n)
    UNION ALL
    SELECT NULL, d.last_at, d.state, d.sink, d.code, d.reply, d.address, d.batch, d.message_id)
    e (n, at, state, sink, code, reply, address, batch, message_id)
ORDER BY d.token, d.queue, e.n NULLS LAST)",
    db::microseconds_sql("d.not_before"), db::microseconds_sql("d.accepted_at"),
    db::microseconds_sql("e.at"));

// A bounce of any kind is one here; the reply says which. The rank is null for what is of an earlier mail.
const std::string token_reports_sql = fmt::format(R"(
SELECT b.queue, b.token, {} AS at_us, coalesce(mailroom_reported_outcome(b.kind), b.kind) AS state, b.remote, b.address,
  concat_ws(': ', concat_ws(', ', nullif(b.kind, 'complaint'), b.reason), concat_ws(' ', b.status, b.reply)) AS reply,
  (SELECT mailroom_report_rank(b.kind) FROM mailroom_deliveries d WHERE d.queue = b.queue AND d.token = b.token
     AND b.at >= least(d.accepted_at, d.answered_at) AND mailroom_reported_outcome(b.kind) IS NOT NULL) AS rank
FROM unnest($1::int8multirange) u (g),
  LATERAL (SELECT m.id, m.at, m.queue, m.token, m.address, m.kind, m.reason, m.status, m.reply, m.remote FROM mailroom_bounces m
           WHERE m.token >= lower(u.g) AND m.token < upper(u.g) ORDER BY m.token LIMIT 2000000000) b
ORDER BY b.id)",
                                                  db::microseconds_sql("b.at"));

void add_reports(pqxx::transaction_base& transaction, const std::vector<selection::IdRange>& tokens,
                 std::vector<DeliveryRecord>& deliveries) {
  if (deliveries.empty()) return;
  std::map<const DeliveryRecord*, int> ranks;
  for (const auto& row :
       db::Connection::execute(transaction, token_reports_sql, selection::multirange_of(tokens))) {
    const auto token = row.number("token");
    const auto found = std::find_if(deliveries.begin(), deliveries.end(), [&](const auto& delivery) {
      return delivery.token == token && delivery.queue == row.view("queue");
    });
    if (found == deliveries.end()) continue;
    found->reports.push_back({.token = {.id = token},
                              .queue = row.text("queue"),
                              .at = row.moment<std::chrono::microseconds>("at_us"),
                              .state = row.text("state"),
                              .sink = row.text("remote"),
                              .address = row.text("address"),
                              .code = 0,
                              .reply = row.text("reply")});
    auto& highest = ranks[&*found];
    const auto rank = row.optional<int>("rank");
    if (!rank || *rank < highest) continue;
    highest = *rank;
    found->deciding_report = found->reports.size() - 1;
  }
}

DeliveryRecord read_record(const db::Row& row) {
  return {.token = row.number("token"),
          .queue = row.text("queue"),
          .counted = row.number<int>("attempts"),
          .unknowns = row.number<int>("unknowns"),
          .batch = row.number("batch"),
          .not_before = row.optional_moment<std::chrono::microseconds>("not_before_us"),
          .accepted_at = row.optional_moment<std::chrono::microseconds>("accepted_us")};
}

DeliveryAttempt read_attempt(const db::Row& row) {
  return {.token = {.id = row.number("token")},
          .queue = row.text("queue"),
          .at = row.moment<std::chrono::microseconds>("at_us"),
          .state = row.text("state"),
          .sink = row.text("sink"),
          .address = row.text("address"),
          .key = row.text("key"),
          .code = row.optional<int>("code").value_or(0),
          .reply = row.text("reply"),
          .message_id = row.text("message_id")};
}

}  // namespace

std::vector<StoredToken> find_tokens(pqxx::transaction_base& transaction,
                                     const std::vector<std::int64_t>& ids) {
  return read_tokens(db::Connection::execute(
      transaction,
      fmt::format(
          "SELECT {} FROM tokens t LEFT JOIN accounts a ON a.id = t.account WHERE t.id = ANY ($1::bigint[])",
          token_columns),
      db::array_text(ids)));
}

AccountTokens find_tokens_of(pqxx::transaction_base& transaction, std::int64_t account, std::int64_t limit) {
  // Materialized: otherwise the planner may scan the primary key in order instead of the index on account.
  const auto rows = db::Connection::execute(transaction,
                                            fmt::format(R"(
WITH mine AS MATERIALIZED (
  SELECT id, action, account, expires_at, consumed_at, created_at, message, recipient FROM tokens WHERE account = $1)
SELECT {}, (SELECT count(*) FROM mine) AS total
FROM mine t LEFT JOIN accounts a ON a.id = $1
ORDER BY t.id DESC
LIMIT $2)",
                                                        token_columns),
                                            account, limit);
  return {.newest = read_tokens(rows), .total = rows.empty() ? 0 : rows[0].number("total")};
}

std::vector<Operation> find_operations(pqxx::transaction_base& transaction,
                                       const std::vector<std::int64_t>& ids) {
  return read_operations(transaction, {}, "o.id = ANY ($2::bigint[])", db::array_text(ids));
}

std::vector<Operation> operations_on_account(pqxx::transaction_base& transaction, std::int64_t account) {
  return read_operations(transaction, {}, "account = $2 ORDER BY at, o.id", account);
}

std::vector<Operation> operations_on_addresses(pqxx::transaction_base& transaction,
                                               const std::vector<std::string>& addresses) {
  return read_operations(
      transaction, {},
      "kind IN ('suppress', 'unsuppress', 'unsubscribe', 'resubscribe') AND (details->>'address' = ANY (ARRAY("
      "SELECT mailroom_canonical(a) FROM unnest($2::text[]) a)) OR EXISTS (SELECT FROM "
      "unnest($2::text[]) a WHERE details->'addresses' ? mailroom_canonical(a))) ORDER BY at, o.id",
      db::quoted_array_text(addresses));
}

std::vector<Operation> operations_on_messages(pqxx::transaction_base& transaction,
                                              const std::vector<std::int64_t>& messages) {
  return read_operations(
      transaction, {},
      "kind IN ('cancel message', 'reschedule message') AND (details->'message')::bigint = ANY ($2::bigint[]) ORDER BY at, o.id",
      db::array_text(messages));
}

std::vector<Operation> operations_on_tokens(pqxx::transaction_base& transaction,
                                            const std::vector<selection::IdRange>& tokens, Moment since) {
  // created_at is the start of the transaction that created the token, in whole seconds.
  return read_operations(
      transaction, tokens,
      fmt::format("kind IN ('rewind', 'replay', 'revoke', 'create queue') "
                  "AND at >= to_timestamp($2::bigint) - interval '1 s' "
                  "AND (kind = 'create queue' OR NOT isempty({}) OR details->'cut' <> '[]') "
                  "ORDER BY at, o.id",
                  touched),
      in_seconds(since));
}

std::vector<Operation> list_operations(pqxx::transaction_base& transaction, Moment since, Moment until,
                                       std::int64_t limit) {
  return read_operations(transaction, {},
                         "at >= to_timestamp($2::bigint) AND at < to_timestamp($3::bigint) "
                         "ORDER BY at DESC, o.id DESC LIMIT $4",
                         in_seconds(since), in_seconds(until), limit);
}

std::vector<DeliveryRecord> find_deliveries(pqxx::transaction_base& transaction,
                                            const std::vector<selection::IdRange>& tokens) {
  std::vector<DeliveryRecord> deliveries;
  for (const auto& row :
       db::Connection::execute(transaction, token_deliveries_sql, selection::multirange_of(tokens))) {
    auto attempt = read_attempt(row);
    if (deliveries.empty() || deliveries.back().token != attempt.token.id ||
        deliveries.back().queue != attempt.queue)
      deliveries.push_back(read_record(row));
    deliveries.back().attempts.push_back(std::move(attempt));
  }
  add_reports(transaction, tokens, deliveries);
  return deliveries;
}

}  // namespace mailroom::feed
