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
                       (SELECT floor(extract(epoch FROM now()))::bigint)),
  t.created_at, t.expires_at, t.consumed_at, t.account, {}, a.login, a.status, t.message,
  EXISTS (SELECT FROM mailroom_actions x WHERE x.action = t.action::text AND x.path IS NOT NULL),
  (SELECT m.reference FROM mailroom_messages m WHERE m.id = t.message), {})",
                                              db::address_sql, db::consumed_as_sql);

std::vector<StoredToken> read_tokens(const pqxx::result& rows) {
  std::vector<StoredToken> tokens;
  for (const auto& row : rows) {
    tokens.push_back({.id = row[0].as<std::int64_t>(),
                      .action = row[1].c_str(),
                      .state = row[2].c_str(),
                      .account = {.id = db::optional_of<std::int64_t>(row[6]).value_or(0),
                                  .email = row[7].c_str(),
                                  .login = row[8].c_str(),
                                  .status = row[9].c_str()},
                      .created_at = db::moment_in<std::chrono::seconds>(row[3]),
                      .expires_at = db::moment_in<std::chrono::seconds>(row[4]),
                      .consumed_at = db::optional_moment_in<std::chrono::seconds>(row[5]),
                      .message = db::optional_of<std::int64_t>(row[10]),
                      .reference = row[12].c_str(),
                      .consumed_as = row[13].c_str(),
                      .has_link = row[11].as<bool>()});
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
SELECT o.id, {}, kind, actor, db_user, reason, queue, account, a.email, a.login, details::text, ({})::text
FROM mailroom_operations o LEFT JOIN accounts a ON a.id = account
WHERE {})",
                               db::microseconds_sql("at"), touched, condition);
  std::vector<Operation> operations;
  for (const auto& row :
       db::Connection::execute(transaction, sql, selection::multirange_of(tokens), more...)) {
    Operation operation{.id = row[0].template as<std::int64_t>(),
                        .at = db::moment_in<std::chrono::microseconds>(row[1]),
                        .kind = find_kind(row[2].c_str()),
                        .actor = row[3].c_str(),
                        .db_user = row[4].c_str(),
                        .reason = row[5].c_str(),
                        .queue = row[6].c_str(),
                        .details = row[10].c_str(),
                        .tokens = selection::parse_id_ranges(row[11].c_str())};
    if (!row[7].is_null())
      operation.account = {
          .id = row[7].template as<std::int64_t>(), .email = row[8].c_str(), .login = row[9].c_str()};
    read_details(operation);
    operations.push_back(std::move(operation));
  }
  return operations;
}

// A row for each outcome, the present one last. Each range of ids is a condition of the primary key.
const std::string token_deliveries_sql = fmt::format(
    R"(
SELECT d.queue, d.token, d.attempts, d.unknowns, d.batch, {}, {}, {}, e.state, e.sink, e.code, e.reply, e.address,
  (SELECT b.key FROM mailroom_batches b WHERE b.id = e.batch), e.message_id
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
SELECT b.queue, b.token, {}, coalesce(mailroom_reported_outcome(b.kind), b.kind),
  b.remote, NULL, concat_ws(': ', concat_ws(', ', nullif(b.kind, 'complaint'), b.reason), concat_ws(' ', b.status, b.reply)), b.address,
  (SELECT mailroom_report_rank(b.kind) FROM mailroom_deliveries d WHERE d.queue = b.queue AND d.token = b.token
     AND b.at >= least(d.accepted_at, d.answered_at) AND mailroom_reported_outcome(b.kind) IS NOT NULL)
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
    const auto token = row[1].as<std::int64_t>();
    const auto found = std::find_if(deliveries.begin(), deliveries.end(), [&](const auto& delivery) {
      return delivery.token == token && delivery.queue == row[0].c_str();
    });
    if (found == deliveries.end()) continue;
    found->reports.push_back({.token = {.id = token},
                              .queue = row[0].c_str(),
                              .at = db::moment_in<std::chrono::microseconds>(row[2]),
                              .state = row[3].c_str(),
                              .sink = row[4].c_str(),
                              .address = row[7].c_str(),
                              .code = 0,
                              .reply = row[6].c_str()});
    auto& highest = ranks[&*found];
    if (row[8].is_null() || row[8].as<int>() < highest) continue;
    highest = row[8].as<int>();
    found->deciding_report = found->reports.size() - 1;
  }
}

template <typename Row>
DeliveryRecord read_record(const Row& row) {
  return {.token = row[1].template as<std::int64_t>(),
          .queue = row[0].c_str(),
          .counted = row[2].template as<int>(),
          .unknowns = row[3].template as<int>(),
          .batch = row[4].template as<std::int64_t>(),
          .not_before = db::optional_moment_in<std::chrono::microseconds>(row[5]),
          .accepted_at = db::optional_moment_in<std::chrono::microseconds>(row[6])};
}

template <typename Row>
DeliveryAttempt read_attempt(const Row& row) {
  return {.token = {.id = row[1].template as<std::int64_t>()},
          .queue = row[0].c_str(),
          .at = db::moment_in<std::chrono::microseconds>(row[7]),
          .state = row[8].c_str(),
          .sink = row[9].c_str(),
          .address = row[12].c_str(),
          .key = row[13].c_str(),
          .code = row[10].is_null() ? 0 : row[10].template as<int>(),
          .reply = row[11].c_str(),
          .message_id = row[14].c_str()};
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
SELECT {}, (SELECT count(*) FROM mine)
FROM mine t LEFT JOIN accounts a ON a.id = $1
ORDER BY t.id DESC
LIMIT $2)",
                                                        token_columns),
                                            account, limit);
  return {.newest = read_tokens(rows), .total = rows.empty() ? 0 : rows[0][14].as<std::int64_t>()};
}

std::vector<Operation> find_operations(pqxx::transaction_base& transaction,
                                       const std::vector<std::int64_t>& ids) {
  return read_operations(transaction, {}, "o.id = ANY ($2::bigint[])", db::array_text(ids));
}

std::vector<Operation> operations_on_account(pqxx::transaction_base& transaction, std::int64_t account) {
  return read_operations(transaction, {}, "account = $2 ORDER BY at, o.id", account);
}

std::vector<Operation> operations_on_messages(pqxx::transaction_base& transaction,
                                              const std::vector<std::int64_t>& messages) {
  return read_operations(
      transaction, {},
      "kind = 'cancel message' AND (details->'message')::bigint = ANY ($2::bigint[]) ORDER BY at, o.id",
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
