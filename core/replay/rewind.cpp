// The SQL that finds, counts and revives the tokens of a range, for the plan and when it is carried out.

#include "replay/rewind.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "db/values.hpp"

namespace mailroom::replay {
namespace {

/// The tokens of a range that the queue takes, each with its state, and whether only its expiry keeps it from
/// being due: no expiry of a revoked token is moved. $1 and $2 bound the range, $3 is the queue.
const std::string replayable_sql = R"(
WITH revoked AS MATERIALIZED (
  SELECT o.at, mailroom_operation_ids(o.kind, o.details) AS ids FROM mailroom_operations o WHERE o.kind = 'revoke')
SELECT t.id, t.created_at,
  mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now) AS state,
  mailroom_token_state(t.action, t.consumed_at, clock.now + 1, a.status, clock.now) = 'due'
    AND NOT EXISTS (SELECT FROM revoked r WHERE r.ids @> t.id AND r.at >= to_timestamp(t.created_at)) AS revivable
FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now, mailroom_queue_actions($3) AS actions) clock,
  tokens t LEFT JOIN accounts a ON a.id = t.account
WHERE t.id > $1 AND t.id <= $2 AND mailroom_takes(clock.actions, t.action))";

/// Runs `sql` within the caller's transaction, with the parameters of `replayable_sql`, and the extension as
/// $4.
db::Rows run_on_candidates(pqxx::transaction_base& transaction, const std::string& sql,
                           const RewindRequest& request, const RewindPlan& plan) {
  return db::Connection::execute(transaction, sql, plan.range_from, plan.range_to, request.queue,
                                 request.extension.count());
}

std::int64_t newest_token(db::Connection& connection) {
  return connection.run("SELECT id FROM mailroom_last_drawn_token()").value<std::int64_t>();
}

std::int64_t cursor_of(db::Connection& connection, const std::string& queue) {
  return connection.run("SELECT cursor FROM mailroom_queue_state($1)", queue).value<std::int64_t>();
}

/// The id before the first token that was created at `time` or later, at most the cursor: a time after the
/// last token must not skip waiting tokens.
std::int64_t id_before(db::Connection& connection, Moment time, std::int64_t cursor) {
  // OFFSET 0 keeps the planner from scanning the primary key instead of the index on created_at.
  const auto row = connection.run(
      "SELECT min(id) - 1 AS id FROM (SELECT id FROM tokens WHERE created_at >= $1 OFFSET 0) t",
      in_seconds(time))[0];
  return std::min(row.optional<std::int64_t>("id").value_or(cursor), cursor);
}

std::int64_t resolve(db::Connection& connection, const RewindTarget& target, const RewindPlan& plan) {
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

TokenTally& tally_of(RewindPlan& plan, const std::string& state, bool revived) {
  if (revived) return plan.revived;
  if (state == "due") return plan.deliverable;
  if (state == "expired") return plan.expired;
  return state == "consumed" ? plan.consumed : plan.wrong_status;
}

void count_tokens(db::Connection& connection, const RewindRequest& request, RewindPlan& plan) {
  const auto sql = "WITH found AS MATERIALIZED (" + replayable_sql + R"(),
emitted AS MATERIALIZED (
  SELECT mailroom_emitted_ids($3, (SELECT min(created_at) FROM found), int8range($1, $2, '(]')) AS ids),
known AS (
  SELECT f.state, f.revivable AND f.state = 'expired' AND $4::bigint > 0 AS revived, f.id <@ emitted.ids AS emitted,
    d.state AS outcome, coalesce(d.accepted_at IS NOT NULL OR d.state = 'accepted', false) AS accepted,
    coalesce(d.unknowns > 0 OR d.state = 'unknown', false) AS maybe
  FROM found f CROSS JOIN emitted LEFT JOIN mailroom_deliveries d
    ON d.queue = $3 AND d.token = f.id AND d.last_at >= to_timestamp(f.created_at))
SELECT state, revived, count(*), count(*) FILTER (WHERE emitted) AS emitted_before,
  count(*) FILTER (WHERE accepted) AS accepted, count(*) FILTER (WHERE maybe AND NOT accepted) AS maybe,
  count(*) FILTER (WHERE emitted AND outcome IS NULL) AS emitted
FROM known
GROUP BY 1, 2)";
  const auto rows = connection.alone([&](auto& each) { return run_on_candidates(each, sql, request, plan); });
  for (const auto& row : rows) {
    tally_of(plan, row.text("state"), row.flag("revived")) = {.count = row.number("count"),
                                                              .emitted_before = row.number("emitted_before"),
                                                              .before = {.accepted = row.number("accepted"),
                                                                         .maybe = row.number("maybe"),
                                                                         .emitted = row.number("emitted")}};
  }
}

std::int64_t count_deferred(db::Connection& connection, const std::string& queue) {
  return connection
      .run("SELECT count(*) FROM mailroom_deliveries WHERE queue = $1 AND not_before IS NOT NULL", queue)
      .value<std::int64_t>();
}

/// Gives expired tokens of the range a new expiry if only their expiry keeps them from being due.
std::int64_t revive(pqxx::transaction_base& transaction, const RewindRequest& request,
                    const RewindPlan& plan) {
  if (request.extension.count() == 0) return 0;
  const auto sql = R"(
UPDATE tokens SET expires_at = floor(extract(epoch FROM clock_timestamp()))::bigint + $4::bigint
WHERE id IN (SELECT id FROM ()" +
                   replayable_sql + ") found WHERE state = 'expired' AND revivable)";
  return static_cast<std::int64_t>(run_on_candidates(transaction, sql, request, plan).affected_rows());
}

std::string details_of(const RewindPlan& plan, std::int64_t revived) {
  auto details = nlohmann::json::object();
  if (plan.is_forward()) details["moved_past"] = plan.deliverable.count;
  if (revived > 0) details["revived"] = revived;
  return plain_json(details);
}

void wake(pqxx::transaction_base& transaction, const std::string& channel) {
  db::Connection::execute(transaction, "SELECT pg_notify($1, '')", channel);
}

}  // namespace

SentBefore& SentBefore::operator+=(const SentBefore& other) {
  accepted += other.accepted;
  maybe += other.maybe;
  emitted += other.emitted;
  return *this;
}

bool RewindPlan::changes_nothing() const {
  return cursor_after == cursor_before;
}

std::int64_t RewindPlan::replayed() const {
  return is_forward() ? 0 : deliverable.count + revived.count;
}

std::int64_t starting_cursor(db::Connection& connection, const RewindTarget& target) {
  RewindPlan plan;
  plan.newest = newest_token(connection);
  plan.cursor_before = plan.newest;
  return resolve(connection, target, plan);
}

RewindPlan plan_rewind(db::Connection& connection, const RewindRequest& request) {
  RewindPlan plan;
  plan.cursor_before = cursor_of(connection, request.queue);
  plan.newest = newest_token(connection);
  plan.cursor_after = resolve(connection, request.target, plan);
  plan.range_from = std::min(plan.cursor_before, plan.cursor_after);
  plan.range_to = std::max(plan.cursor_before, plan.cursor_after);
  if (plan.cursor_after >= plan.cursor_before) plan.deferred = count_deferred(connection, request.queue);
  count_tokens(connection, request, plan);
  return plan;
}

std::int64_t carry_out_rewind(db::Connection& connection, const RewindRequest& request,
                              const RewindPlan& plan, const queue::OperationAuthor& author,
                              const std::string& channel) {
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    const auto revived = plan.is_forward() ? 0 : revive(transaction, request, plan);
    const auto details = details_of(plan, revived);
    const auto replayed =
        db::Connection::execute(transaction, "SELECT replayed FROM mailroom_rewind($1, $2, $3, $4::jsonb)",
                                request.queue, plan.cursor_after, request.max_replay, details)
            .value<std::int64_t>();
    wake(transaction, channel);
    return replayed;
  });
}

std::int64_t replay_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                           const std::vector<std::int64_t>& tokens, const std::string& details,
                           const std::string& channel) {
  if (tokens.empty()) return 0;
  const auto replayed =
      db::Connection::execute(transaction, "SELECT mailroom_replay($1, $2::bigint[], $3::jsonb)", queue,
                              db::array_text(tokens), details)
          .value<std::int64_t>();
  wake(transaction, channel);
  return replayed;
}

}  // namespace mailroom::replay
