// One round trip acknowledges a batch with its outcomes, claims the next, and fetches it if it is small. What
// a claim takes, and from which tokens on, migrations/functions/claim.sql decides; how many it asks for,
// consumer/batcher.

#include "claim/claim_statement.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "db/values.hpp"
#include "selection/id_range.hpp"

namespace mailroom::claim {
namespace {

/// A poll of an idle queue, which also makes tokens of at most $2 scheduled messages.
constexpr const char* poll_sql = R"(
SELECT c.cursor, coalesce(c.newest, 0) AS newest, r.released, mailroom_inserts_notify() AS inserts_notify,
  extract(epoch FROM least(c.next, r.next) - clock_timestamp()) AS until_next
FROM mailroom_idle_cursor($1) c, LATERAL mailroom_release($2) r)";

constexpr const char* poll_alone_sql = R"(
SELECT c.cursor, coalesce(c.newest, 0) AS newest, 0 AS released, mailroom_inserts_notify() AS inserts_notify,
  extract(epoch FROM c.next - clock_timestamp()) AS until_next
FROM mailroom_idle_cursor($1) c)";

ClaimReply read_poll(const db::Row& row) {
  ClaimReply reply{.last = row.number("cursor"),
                   .is_idle = true,
                   .released = row.number<int>("released"),
                   .newest = row.number("newest"),
                   .inserts_notify = row.flag("inserts_notify")};
  if (const auto seconds = row.optional<double>("until_next"))
    reply.next = std::chrono::ceil<Milliseconds>(std::chrono::duration<double>(std::min(*seconds, 86'400.0)));
  return reply;
}

/// By this process's clock, so that the server can tell when by its own.
std::optional<std::int64_t> microseconds_since(const std::optional<TimePoint>& time) {
  if (!time) return std::nullopt;
  return std::chrono::floor<std::chrono::microseconds>(steady_now() - *time).count();
}

/// True if `second` is of the next token, and the rest is the same, as for the tokens of a line.
bool continues(const TokenOutcome& first, const TokenOutcome& second) {
  return second.token == first.token + 1 && first.state == second.state &&
         first.attempts == second.attempts && first.unknowns == second.unknowns &&
         first.wait == second.wait && first.answered_at == second.answered_at && first.code == second.code &&
         first.sink == second.sink && first.address == second.address &&
         first.counted_as == second.counted_as && first.reply == second.reply &&
         first.message_id == second.message_id && first.content_hash == second.content_hash &&
         first.templates == second.templates && first.suppress == second.suppress;
}

/// Adds an object for the tokens from that of `outcome` to `last`. Written without a tree of objects, which
/// would take ten times the memory of the text.
void append_outcome(std::string& text, const TokenOutcome& outcome, std::int64_t last,
                    std::chrono::system_clock::time_point now) {
  append_format(text, R"({{"first":{},"last":{},"state":"{}","attempts":{},"unknowns":{})", outcome.token,
                last, fate::outcome_name(outcome.state), outcome.attempts, outcome.unknowns);
  if (outcome.state == fate::Outcome::deferred) append_format(text, R"(,"wait":{})", outcome.wait.count());
  if (outcome.answered_at) {
    const auto ago = std::max(std::chrono::duration<double>(now - *outcome.answered_at).count(), 0.0);
    append_format(text, R"(,"ago":{:.6f})", ago);
  }
  const auto append_text = [&](std::string_view key, const std::string& value) {
    if (value.empty()) return;
    text.append(",\"").append(key).append("\":");
    append_json_string(text, value);
  };
  append_text("sink", outcome.sink);
  append_text("address", outcome.address);
  append_text("counted_as", outcome.counted_as);
  append_text("message_id", outcome.message_id);
  append_text("content_hash", outcome.content_hash);
  append_text("templates", outcome.templates);
  append_text("suppress", outcome.suppress);
  if (outcome.code != 0) append_format(text, R"(,"code":{})", outcome.code);
  append_text("reply", outcome.reply);
  text += "}";
}

/// The outcomes as mailroom_receipt takes them, an array of objects; nullopt without outcomes.
std::optional<std::string> outcomes_json(const Receipt& receipt) {
  if (!receipt.outcomes) return std::nullopt;
  const auto now = std::chrono::system_clock::now();
  const auto& outcomes = *receipt.outcomes;
  std::string text = "[";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto first = i;
    while (i + 1 < outcomes.size() && continues(outcomes[i], outcomes[i + 1]))
      ++i;
    if (first > 0) text += ",";
    append_outcome(text, outcomes[first], outcomes[i].token, now);
  }
  return text + "]";
}

}  // namespace

ClaimStatement::ClaimStatement(db::Connection& connection, Claimant claimant)
    : connection_(connection), claimant_(std::move(claimant)) {
  const auto& detail = claimant_.detail;
  connection_.prepare("claim", claim_sql());
  connection_.prepare("flush", "SELECT mailroom_flush($1)");
  if (!detail.delivers) {
    connection_.prepare("claim and fetch", claim_and_fetch_sql(detail.with_creation, false));
    connection_.prepare("claim and fetch with messages", claim_and_fetch_sql(detail.with_creation, true));
  }
  connection_.prepare("poll", poll_sql);
  connection_.prepare("poll alone", poll_alone_sql);
  // A role that the documents had before there were messages still claims.
  may_release_ =
      connection_.run("SELECT has_function_privilege('mailroom_release(integer)', 'EXECUTE')").value<bool>();
}

ClaimedBatch ClaimStatement::run(const ClaimRequest& request) {
  if (request.without_lock) return {.reply = acknowledge_alone(*request.receipt)};
  if (request.routine && !request.receipt) {
    if (auto reply = poll(queue_of(request))) return {.reply = *std::move(reply)};
  }
  db::Rows rows;
  const bool delivers = claimant_.detail.delivers;
  try {
    const char* fetching = had_messages_ ? "claim and fetch with messages" : "claim and fetch";
    rows = run_claim(delivers ? "claim" : fetching, request);
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() == db::sqlstate::query_cancelled || delivers) throw;
    // A failed fetch must not roll back the claim, or the batch's attempts would not be counted.
    rows = run_claim("claim", request);
  }
  if (const auto unflushed = rows[0].optional<std::int64_t>("unflushed"))
    connection_.run_prepared("flush", *unflushed);
  ClaimedBatch claimed{.reply = read_reply(rows[0], queue_of(request))};
  if (!claimed.reply.lease) return claimed;
  if (has_tokens(rows[0]) && claimed.reply.size < large_batch) claimed.rows = rows;
  // The claim itself does not always know that there are none, and none comes with a large batch.
  had_messages_ = claimed.rows && has_messages(*claimed.rows);
  return claimed;
}

std::optional<ClaimReply> ClaimStatement::poll(const std::string& queue) {
  const auto rows = may_release_ ? connection_.run_prepared("poll", queue, release_limit)
                                 : connection_.run_prepared("poll alone", queue);
  if (rows.empty()) return std::nullopt;
  return read_poll(rows[0]);
}

db::Rows ClaimStatement::run_claim(const char* statement, const ClaimRequest& request) {
  static const Receipt none{};
  const auto& receipt = request.receipt ? *request.receipt : none;
  std::optional<std::int64_t> batch;
  if (request.receipt) batch = receipt.lease.batch;
  const auto& counts = receipt.counts;
  const char* wake = request.wakes ? claimant_.channel.c_str() : nullptr;
  return connection_.run_prepared(
      statement, claimant_.collector, queue_of(request), request.limit, request.partial, request.take_over,
      request.publish_cursor, claimant_.detail.delivers, wake, batch, receipt.lease.attempt, counts.emitted,
      counts.expired, counts.consumed, counts.wrong_status, counts.invalid,
      selection::multirange_text(counts.skipped_ids), storable_outcomes(receipt),
      microseconds_since(receipt.signed_at), microseconds_since(receipt.written_at), request.held);
}

std::optional<std::string> ClaimStatement::storable_outcomes(const Receipt& receipt) const {
  auto outcomes = outcomes_json(receipt);
  if (outcomes) outcomes = db::storable(connection_.facts(), std::move(*outcomes));
  return outcomes;
}

void ClaimStatement::report(const Receipt& late) {
  connection_.run("SELECT mailroom_report_late($1, $2, $3, $4::jsonb)", late.lease.queue, late.lease.batch,
                  late.lease.attempt, storable_outcomes(late));
}

ClaimReply ClaimStatement::acknowledge_alone(const Receipt& receipt) {
  const auto& counts = receipt.counts;
  const auto rows = connection_.run(
      R"(
SELECT mailroom_acknowledge(ROW(id, attempts, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $11)::mailroom_receipt)
FROM mailroom_batches
WHERE id = $1::bigint AND attempts = $2::int AND collector = pg_backend_pid())",
      receipt.lease.batch, receipt.lease.attempt, counts.emitted, counts.expired, counts.consumed,
      counts.wrong_status, counts.invalid, selection::multirange_text(counts.skipped_ids),
      storable_outcomes(receipt), microseconds_since(receipt.signed_at),
      microseconds_since(receipt.written_at));
  if (rows.empty()) throw Error(ExitCode::locked, "this session did not lease the batch");
  return {.receipt_void = !rows.value<bool>()};
}

}  // namespace mailroom::claim
