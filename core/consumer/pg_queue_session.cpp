#include "consumer/pg_queue_session.hpp"

#include <array>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "base/id_range.hpp"
#include "consumer/session_checks.hpp"
#include "db/pooler.hpp"

namespace mailroom {
namespace {

/// A batch of at least this many tokens is streamed: tokens are signed while the server reads the next ones.
/// This costs a plan and saves a tenth of the time.
constexpr int streamed_size = 1000;

/// How long the last statement before a stop may take.
constexpr Milliseconds last_patience{500};

/// Payload of the notification that makes the other collectors drain the inserts that did not notify.
constexpr const char* drain_payload = "drain";

constexpr const char* claim_sql = R"(
SELECT batch, attempt, size, pending, last, more, acknowledged, dead, skipped
FROM mailroom_claim($1, $2, $3, $4, $5, $6, ROW($7, $8, $9, $10, $11, $12, $13, $14)::mailroom_receipt))";

/// The claim, joined with the tokens of a batch that is not streamed, one row per token.
std::string claim_and_fetch_sql() {
  return fmt::format(R"(
SELECT c.*, t.*
FROM ({}) c
LEFT JOIN mailroom_fetch(CASE WHEN c.size < {} THEN c.batch END, c.attempt) t ON true)",
                     claim_sql, streamed_size);
}

/// The first token column in such a row.
constexpr int claim_columns = 9;

using TokenFields = std::array<std::string_view, 8>;

int hex_digit(char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}

/// Reads PostgreSQL's hex form of bytea: `\x`, then two lower-case digits per byte.
std::optional<Secret> read_secret(std::string_view text) {
  if (text.size() != 2 + 2 * secret_size) return std::nullopt;
  Secret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) {
    secret[i] = static_cast<std::uint8_t>(hex_digit(text[2 + 2 * i]) * 16 + hex_digit(text[3 + 2 * i]));
  }
  return secret;
}

TokenState read_state(std::string_view text) {
  if (text == "due") return TokenState::due;
  if (text == "consumed") return TokenState::consumed;
  if (text == "expired") return TokenState::expired;
  if (text == "wrong status") return TokenState::wrong_status;
  throw Error(ExitCode::failed, "a token has a state that this version of mailroom does not know");
}

std::int64_t read_number(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

TokenRow read_token(const TokenFields& fields) {
  return {
      .id = read_number(fields[0]),
      .action = fields[1] == action_name(Action::activation) ? Action::activation : Action::password_recovery,
      .secret = read_secret(fields[2]),
      .code = fields[3],
      .expires_at = read_number(fields[4]),
      .email = fields[5],
      .login = fields[6],
      .state = read_state(fields[7])};
}

template <typename Row>
TokenRow token_of(const Row& row, int first_column) {
  TokenFields fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto field = row[first_column + static_cast<int>(i)];
    fields[i] = {field.c_str(), field.size()};
  }
  return read_token(fields);
}

template <typename Row>
ClaimReply read_reply(const Row& row) {
  ClaimReply reply;
  if (!row[0].is_null()) reply.lease = Lease{row[0].template as<std::int64_t>(), row[1].template as<int>()};
  reply.pending = row[3].template as<int>();
  if (!row[4].is_null()) reply.last = row[4].template as<std::int64_t>();
  reply.more = row[5].template as<bool>();
  reply.receipt_void = !row[6].is_null() && !row[6].template as<bool>();
  if (!row[7].is_null()) reply.dead = row[7].template as<std::int64_t>();
  reply.skipped = row[8].template as<int>();
  return reply;
}

/// Publishes the fingerprint as a session lock: it ends with the session, and needs no row and no privilege.
/// If another session holds the lock exclusively, status does not show this key.
void show_fingerprint(Connection& connection, const std::string& fingerprint) {
  connection.run("SELECT pg_try_advisory_lock_shared(('x' || $1::text)::bit(64)::bigint)", fingerprint);
}

}  // namespace

PgQueueSession::PgQueueSession(const std::string& conninfo, std::string queue, const std::string& channel,
                               const Check& check_schema, const std::string& fingerprint,
                               StopWatcher* watcher)
    : watcher_(watcher),
      connection_(conninfo, "mailroom collect"),
      queue_(std::move(queue)),
      channel_(channel) {
  const auto waiting = wait();
  require_own_session(connection_, conninfo, "mailroom collect");
  check_schema(connection_);
  prepare_statements();
  check_queue_preconditions(connection_);
  connection_.listen(channel);
  collector_ = connection_.run("SELECT mailroom_attach($1)", queue_)[0][0].as<int>();
  if (!fingerprint.empty()) show_fingerprint(connection_, fingerprint);
}

void PgQueueSession::prepare_statements() {
  // The queue's guarantees and plans need these settings, whatever the role's or the database's defaults are.
  connection_.run(R"(
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
SET synchronous_commit = on;
SET row_security = off;
SET jit = off;
SET idle_session_timeout = 0;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off)");
  connection_.prepare("claim", claim_sql);
  connection_.prepare("claim and fetch", claim_and_fetch_sql());
  connection_.prepare("fetch", "SELECT * FROM mailroom_batch_tokens($1, $2)");
  connection_.prepare("idle cursor", "SELECT mailroom_idle_cursor FROM mailroom_idle_cursor($1)");
}

ClaimReply PgQueueSession::claim(const ClaimRequest& request) {
  // The last attempt does not wait long for a lock.
  const auto waiting = wait(request.without_lock ? last_patience : StopWatcher::moment);
  claimed_.reset();
  if (request.without_lock) return acknowledge_alone(*request.receipt);
  if (request.routine && !request.receipt) {
    const auto cursor = connection_.run_prepared("idle cursor", queue_);
    if (!cursor.empty()) return {.last = cursor[0][0].as<std::int64_t>()};
  }
  pqxx::result rows;
  try {
    rows = run_claim("claim and fetch", request);
  } catch (const DatabaseError&) {
    if (waiting.cancelled()) throw;
    // A failed fetch must not roll back the claim, or the batch's attempts would not be counted.
    rows = run_claim("claim", request);
  }
  const auto reply = read_reply(rows[0]);
  is_streamed_ = reply.lease && rows[0][2].as<int>() >= streamed_size;
  const bool with_tokens = rows.columns() > claim_columns && !is_streamed_;
  if (reply.lease && with_tokens) claimed_ = Claimed{*reply.lease, rows};
  return reply;
}

pqxx::result PgQueueSession::run_claim(const char* statement, const ClaimRequest& request) {
  const auto receipt = request.receipt.value_or(Receipt{});
  std::optional<std::int64_t> batch;
  if (request.receipt) batch = receipt.lease.batch;
  const auto& counts = receipt.counts;
  return connection_.run_prepared(statement, collector_, queue_, request.limit, request.partial,
                                  request.take_over, request.publish_cursor, batch, receipt.lease.attempt,
                                  counts.emitted, counts.expired, counts.consumed, counts.wrong_status,
                                  counts.invalid, multirange_text(counts.skipped_ids));
}

ClaimReply PgQueueSession::acknowledge_alone(const Receipt& receipt) {
  const auto& counts = receipt.counts;
  const auto rows = connection_.run(R"(
SELECT mailroom_acknowledge(ROW(id, attempts, $3, $4, $5, $6, $7, $8)::mailroom_receipt)
FROM mailroom_batches
WHERE id = $1::bigint AND attempts = $2::int AND collector = pg_backend_pid())",
                                    receipt.lease.batch, receipt.lease.attempt, counts.emitted,
                                    counts.expired, counts.consumed, counts.wrong_status, counts.invalid,
                                    multirange_text(counts.skipped_ids));
  if (rows.empty()) throw Error(ExitCode::locked, "this session did not lease the batch");
  return {.receipt_void = !rows[0][0].as<bool>()};
}

void PgQueueSession::check_health() {
  const auto waiting = wait();
  connection_.run("SELECT 1");
}

bool PgQueueSession::arrange(Waking waking) {
  const auto waiting = wait();
  if (waking == Waking::stay_polling)
    return connection_.run("SELECT mailroom_stay_polling()")[0][0].as<bool>();
  if (waking == Waking::ask) {
    const char* among = silent_ ? silent_->c_str() : nullptr;
    silent_ = connection_.run("SELECT mailroom_open_inserts($1::text[])", among)[0][0].c_str();
    return silent_ != "{}";
  }
  // Even if the statement fails: any transaction open at the next `ask` may not have notified.
  silent_.reset();
  connection_.run("SELECT mailroom_start_listening()");
  if (waking == Waking::drain) connection_.run("SELECT pg_notify($1, $2)", channel_, drain_payload);
  return true;
}

Notified PgQueueSession::take_notifications() {
  const auto payloads = connection_.take_payloads();
  if (payloads.count(drain_payload) > 0) return Notified::drain;
  return payloads.empty() ? Notified::no : Notified::poll;
}

void PgQueueSession::fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) {
  const auto waiting = wait();
  if (is_streamed_) return fetch_stream(lease, each);
  if (const auto claimed = std::exchange(claimed_, {}); claimed && claimed->lease == lease) {
    for (const auto& row : claimed->rows) {
      if (!row[claim_columns].is_null()) each(token_of(row, claim_columns));
    }
    return;
  }
  const auto rows = connection_.run_prepared("fetch", lease.batch, lease.attempt);
  for (const auto& row : rows)
    each(token_of(row, 0));
}

void PgQueueSession::fetch_stream(const Lease& lease, const std::function<void(const TokenRow&)>& each) {
  connection_.copy_out<std::tuple_size_v<TokenFields>>(
      fmt::format("SELECT * FROM mailroom_batch_tokens({}, {})", lease.batch, lease.attempt),
      [&](const TokenFields& fields) { each(read_token(fields)); });
}

}  // namespace mailroom
