// The SQL that finds, counts and revives the tokens of a range, for the plan and when it is carried out.

#include "replay/rewind.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "db/values.hpp"

namespace mailroom {
namespace {

/// The tokens of a range that the queue takes and that match a filter, each with its state and whether only
/// its expiry keeps it from being due. $1 and $2 bound the range, $3 is the action, $4 the accounts, $5 the
/// time before which they were created, $6 the outcome, $7 the queue. Claims skip expired tokens and record
/// no outcome of theirs, so an expired token that no batch has emitted counts as one whose outcome is
/// `expired`.
const std::string candidates = R"(
SELECT t.id, t.created_at,
  mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now) AS state,
  mailroom_token_state(t.action, t.consumed_at, clock.now + 1, a.status, clock.now) = 'due' AS revivable
FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now, mailroom_queue_actions($7) AS actions) clock,
  tokens t JOIN accounts a ON a.id = t.account
WHERE t.id > $1 AND t.id <= $2 AND mailroom_takes(clock.actions, t.action) AND ($3 = '' OR t.action::text = $3)
  AND ($4::bigint[] = '{}' OR t.account = ANY ($4::bigint[])) AND t.created_at < $5
  AND ($6 = '' OR (
    NOT t.id <@ coalesce((
      SELECT range_agg(waiting.g) FROM (
        SELECT unnest(h.ids) FROM mailroom_queue_state($7) s JOIN mailroom_gaps h ON h.id = ANY (s.gap_ids)
        UNION ALL
        SELECT unnest(mailroom_batch_ids(b.ids, b.ids_mask)) FROM mailroom_batches b
        WHERE b.job_type = $7 AND b.emitted_at IS NULL AND b.dead_at IS NULL) waiting (g)), '{}')
    AND $6 = coalesce(
      (SELECT d.state FROM mailroom_deliveries d WHERE d.queue = $7 AND d.token = t.id),
      CASE WHEN $6 = 'expired' AND t.consumed_at IS NULL AND t.expires_at <= clock.now AND NOT t.id <@ (
        SELECT mailroom_emitted_ids($7, min(r.created_at), int8range($1, $2, '(]'))
        FROM tokens r WHERE r.id > $1 AND r.id <= $2) THEN 'expired' END))))";

/// Runs `sql` within the caller's transaction, with the parameters of `candidates`, and the extension as $8.
pqxx::result run_on_candidates(pqxx::transaction_base& transaction, const std::string& sql,
                               const RewindRequest& request, const RewindPlan& plan) {
  const auto& filter = request.filter;
  const auto end = filter.until ? in_seconds(*filter.until) : std::numeric_limits<std::int64_t>::max();
  return Connection::execute(transaction, sql, plan.range_from, plan.range_to, filter.action,
                             array_text(filter.accounts), end, filter.outcome, request.queue,
                             request.extension.count());
}

std::int64_t newest_token(Connection& connection) {
  return connection
      .run("SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tokens_id_seq")[0][0]
      .as<std::int64_t>();
}

std::int64_t cursor_of(Connection& connection, const std::string& queue) {
  return connection.run("SELECT cursor FROM mailroom_queue_state($1)", queue)[0][0].as<std::int64_t>();
}

/// The id before the first token that was created at `time` or later, at most the cursor: a time after the
/// last token must not skip waiting tokens.
std::int64_t id_before(Connection& connection, Moment time, std::int64_t cursor) {
  // OFFSET 0 keeps the planner from scanning the primary key instead of the index on created_at.
  const auto row =
      connection.run("SELECT min(id) - 1 FROM (SELECT id FROM tokens WHERE created_at >= $1 OFFSET 0) t",
                     in_seconds(time))[0];
  return row[0].is_null() ? cursor : std::min(row[0].as<std::int64_t>(), cursor);
}

std::int64_t resolve(Connection& connection, const RewindTarget& target, const RewindPlan& plan) {
  switch (target.kind) {
    case RewindTarget::Kind::start:
      return 0;
    case RewindTarget::Kind::time:
      return id_before(connection, target.time, plan.cursor_before);
    case RewindTarget::Kind::end:
      return plan.newest;
    case RewindTarget::Kind::id:
      break;
  }
  if (target.id <= plan.newest) return target.id;
  throw Error(
      ExitCode::usage,
      fmt::format("the cursor cannot be set to {}: the newest token drawn is {}", target.id, plan.newest),
      "--to-end is the newest token");
}

/// The id of the newest token of the range, at most the cursor, that was created before `time`.
std::int64_t last_before(Connection& connection, Moment time, const RewindPlan& plan) {
  const auto row = connection.run("SELECT max(id) FROM tokens WHERE id > $1 AND id <= $2 AND created_at < $3",
                                  plan.range_from, plan.cursor_before, in_seconds(time))[0];
  return row[0].is_null() ? plan.range_from : row[0].as<std::int64_t>();
}

void refuse_narrowed_leap(const RewindPlan& plan) {
  if (!plan.narrowed || !plan.is_forward()) return;
  throw Error(
      ExitCode::usage,
      fmt::format(
          "--action, --account, --outcome and --until narrow a replay, but {} is ahead of the cursor at {}",
          plan.cursor_after, plan.cursor_before),
      "tokens ahead of the cursor are emitted anyway");
}

TokenTally& tally_of(RewindPlan& plan, const std::string& state, bool revived) {
  if (revived) return plan.revived;
  if (state == "due") return plan.deliverable;
  if (state == "expired") return plan.expired;
  return state == "consumed" ? plan.consumed : plan.wrong_status;
}

void count_tokens(Connection& connection, const RewindRequest& request, RewindPlan& plan) {
  const auto sql = "WITH found AS MATERIALIZED (" + candidates + R"(),
emitted AS MATERIALIZED (
  SELECT mailroom_emitted_ids($7, (SELECT min(created_at) FROM found), int8range($1, $2, '(]')) AS ids)
SELECT state, revivable AND state = 'expired' AND $8::bigint > 0, count(*),
  count(*) FILTER (WHERE id <@ emitted.ids)
FROM found, emitted
GROUP BY 1, 2)";
  const auto rows = connection.alone([&](auto& each) { return run_on_candidates(each, sql, request, plan); });
  for (const auto& row : rows) {
    tally_of(plan, row[0].c_str(), row[1].as<bool>()) = {.count = row[2].as<std::int64_t>(),
                                                         .emitted_before = row[3].as<std::int64_t>()};
  }
}

std::int64_t count_deferred(Connection& connection, const std::string& queue) {
  return connection
      .run("SELECT count(*) FROM mailroom_deliveries WHERE queue = $1 AND not_before IS NOT NULL",
           queue)[0][0]
      .as<std::int64_t>();
}

/// Gives expired tokens of the range a new expiry if only their expiry keeps them from being due.
std::int64_t revive(pqxx::transaction_base& transaction, const RewindRequest& request,
                    const RewindPlan& plan) {
  if (request.extension.count() == 0) return 0;
  const auto sql = R"(
UPDATE tokens SET expires_at = floor(extract(epoch FROM clock_timestamp()))::bigint + $8::bigint
WHERE id IN (SELECT id FROM ()" +
                   candidates + ") found WHERE state = 'expired' AND revivable)";
  return static_cast<std::int64_t>(run_on_candidates(transaction, sql, request, plan).affected_rows());
}

/// The matching tokens that are due, or will be when they are revived.
std::vector<std::int64_t> matching_tokens(pqxx::transaction_base& transaction, const RewindRequest& request,
                                          const RewindPlan& plan) {
  const auto sql = "SELECT id FROM (" + candidates + R"() found
WHERE state = 'due' OR (state = 'expired' AND revivable AND $8::bigint > 0) ORDER BY id)";
  std::vector<std::int64_t> ids;
  for (const auto& row : run_on_candidates(transaction, sql, request, plan))
    ids.push_back(row[0].as<std::int64_t>());
  return ids;
}

std::string details_of(const RewindRequest& request, const RewindPlan& plan, std::int64_t revived) {
  auto details = nlohmann::json::object();
  if (plan.is_forward()) details["moved_past"] = plan.deliverable.count;
  if (revived > 0) details["revived"] = revived;
  if (!request.filter.action.empty()) details["action"] = request.filter.action;
  if (!request.filter.accounts.empty()) details["accounts"] = request.filter.accounts;
  if (request.filter.until) details["until"] = moment_text(*request.filter.until);
  if (!request.filter.outcome.empty()) details["outcome"] = request.filter.outcome;
  return details.dump();
}

void wake(pqxx::transaction_base& transaction, const std::string& channel) {
  Connection::execute(transaction, "SELECT pg_notify($1, '')", channel);
}

/// The tokens of a narrowed replay. An outcome is read under the queue's lock, so that of two replays at once
/// the second finds the tokens in a gap. Throws Error(declined) if there are more than allowed.
std::vector<std::int64_t> tokens_to_replay(pqxx::transaction_base& transaction, const RewindRequest& request,
                                           const RewindPlan& plan) {
  if (!request.filter.outcome.empty())
    Connection::execute(transaction, "SELECT mailroom_lock_queue($1)", request.queue);
  auto tokens = matching_tokens(transaction, request, plan);
  if (static_cast<std::int64_t>(tokens.size()) > request.max_replay) {
    throw Error(ExitCode::declined,
                fmt::format("this would emit {} tokens, but at most {} are allowed", tokens.size(),
                            request.max_replay),
                "raise the limit with --max-replay");
  }
  return tokens;
}

}  // namespace

bool RewindPlan::changes_nothing() const {
  return narrowed ? replayed() == 0 : cursor_after == cursor_before;
}

std::int64_t RewindPlan::replayed() const {
  return is_forward() ? 0 : deliverable.count + revived.count;
}

std::int64_t starting_cursor(Connection& connection, const RewindTarget& target) {
  RewindPlan plan;
  plan.newest = newest_token(connection);
  plan.cursor_before = plan.newest;
  return resolve(connection, target, plan);
}

RewindPlan plan_rewind(Connection& connection, const RewindRequest& request) {
  RewindPlan plan;
  plan.cursor_before = cursor_of(connection, request.queue);
  plan.newest = newest_token(connection);
  plan.narrowed = !request.filter.empty();
  plan.cursor_after = resolve(connection, request.target, plan);
  refuse_narrowed_leap(plan);
  plan.range_from = std::min(plan.cursor_before, plan.cursor_after);
  plan.range_to = std::max(plan.cursor_before, plan.cursor_after);
  if (request.filter.until) plan.range_to = last_before(connection, *request.filter.until, plan);
  if (plan.narrowed) plan.cursor_after = plan.cursor_before;
  if (!plan.narrowed && plan.cursor_after >= plan.cursor_before)
    plan.deferred = count_deferred(connection, request.queue);
  count_tokens(connection, request, plan);
  return plan;
}

std::int64_t carry_out_rewind(Connection& connection, const RewindRequest& request, const RewindPlan& plan,
                              const OperationAuthor& author, const std::string& channel) {
  return connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    // Read before they are revived: their outcome may follow from their expiry.
    const auto tokens =
        plan.narrowed ? tokens_to_replay(transaction, request, plan) : std::vector<std::int64_t>();
    const auto revived = plan.is_forward() ? 0 : revive(transaction, request, plan);
    const auto details = details_of(request, plan, revived);
    if (plan.narrowed) return replay_tokens(transaction, request.queue, tokens, details, channel);
    const auto replayed =
        Connection::execute(transaction, "SELECT replayed FROM mailroom_rewind($1, $2, $3, $4::jsonb)",
                            request.queue, plan.cursor_after, request.max_replay, details)[0][0];
    wake(transaction, channel);
    return replayed.as<std::int64_t>();
  });
}

std::int64_t replay_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                           const std::vector<std::int64_t>& tokens, const std::string& details,
                           const std::string& channel) {
  if (tokens.empty()) return 0;
  const auto replayed =
      Connection::execute(transaction, "SELECT mailroom_replay($1, $2::bigint[], $3::jsonb)", queue,
                          array_text(tokens), details)[0][0];
  wake(transaction, channel);
  return replayed.as<std::int64_t>();
}

}  // namespace mailroom
