// Finds the missed tokens, and locks claims and inserts out while the fix is carried out.

#include "replay/sequence_fix.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "db/values.hpp"

namespace mailroom::replay {
namespace {

/// The tokens that a queue has missed, with their states. $1 is the queue. Few are expected: the limits keep
/// the planner from joining all tokens.
constexpr const char* missed_sql = R"(
WITH revoked AS MATERIALIZED ({})
SELECT t.id, mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now) AS state,
  mailroom_token_state(t.action, t.consumed_at, clock.now + 1, a.status, clock.now) = 'due'
    AND NOT EXISTS (SELECT FROM revoked r WHERE r.ids @> t.id AND r.at >= to_timestamp(t.created_at)) AS revivable
FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now) clock,
  mailroom_missed_tokens($1) m (id), LATERAL (SELECT id, action, consumed_at, expires_at, created_at, account FROM tokens WHERE tokens.id = m.id LIMIT 1) t
  LEFT JOIN LATERAL (SELECT status FROM accounts WHERE accounts.id = t.account LIMIT 1) a ON true)";

/// What nothing revives is asked only where something is revived: the role of a collector, as which doctor
/// checks, may not read operations.
std::string missed_tokens_sql(std::chrono::seconds extension) {
  return fmt::format(missed_sql, extension.count() > 0
                                     ? "SELECT o.at, mailroom_operation_ids(o.kind, o.details) AS ids "
                                       "FROM mailroom_operations o WHERE o.kind = 'revoke'"
                                     : "SELECT now() AS at, int8multirange() AS ids WHERE false");
}

MissedTokens read_missed(pqxx::transaction_base& transaction, const std::string& queue, std::int64_t cursor,
                         std::chrono::seconds extension) {
  MissedTokens missed{.queue = queue, .cursor = cursor};
  const auto rows =
      db::Connection::execute(transaction,
                              fmt::format("SELECT state, revivable, count(*) FROM ({}) missed GROUP BY 1, 2",
                                          missed_tokens_sql(extension)),
                              queue);
  for (const auto& row : rows) {
    const std::string state = row.text("state");
    const bool is_revived = state == "expired" && row.flag("revivable") && extension.count() > 0;
    auto& tally = is_revived           ? missed.revived
                  : state == "due"     ? missed.due
                  : state == "expired" ? missed.expired
                                       : missed.wrong_status;
    tally += row.number("count");
  }
  return missed;
}

/// Each of them is compared with the cursor of its time, which takes some 0.4 s for a million.
constexpr int most_checked_tokens = 50'000;

/// True if mailroom_missed_tokens() would read only a few tokens. Must not scan the table to find the first
/// of them.
bool has_few_new_tokens(pqxx::transaction_base& transaction) {
  db::Connection::execute(transaction, "SET LOCAL enable_seqscan = off");
  const auto rows = db::Connection::execute(transaction, R"(
SELECT count(*) FROM (
  SELECT FROM tokens
  WHERE created_at >= (
    SELECT least(extract(epoch FROM clock_timestamp())::bigint - 3600, min(extract(epoch FROM b.claimed_at)::bigint - 1))
    FROM jobs j, LATERAL (
      SELECT claimed_at FROM mailroom_batches WHERE queue = j.job_type ORDER BY id DESC LIMIT 1) b)
  LIMIT $1::int) t)",
                                            most_checked_tokens);
  return rows.value<int>() < most_checked_tokens;
}

/// Reads the sequence last: it only grows, so a cursor or token read earlier cannot appear ahead of it by
/// chance.
SequenceFix read_fix(pqxx::transaction_base& transaction, std::chrono::seconds extension,
                     bool finds_missed = true) {
  // Compiling the statements takes seconds, and running them milliseconds.
  db::Connection::execute(transaction, "SET LOCAL jit = off");
  SequenceFix fix{.queues = {}, .is_complete = finds_missed};
  for (const auto& row : db::Connection::execute(transaction, R"(
SELECT j.job_type, s.cursor FROM jobs j, LATERAL mailroom_queue_state(j.job_type) s
ORDER BY 1)")) {
    const auto cursor = row.number("cursor");
    fix.queues.push_back(finds_missed ? read_missed(transaction, row.text("job_type"), cursor, extension)
                                      : MissedTokens{.queue = row.text("job_type"), .cursor = cursor});
  }
  fix.newest_token =
      db::Connection::execute(transaction, "SELECT coalesce(max(id), 0) FROM tokens").value<std::int64_t>();
  fix.sequence_before = db::Connection::execute(transaction, "SELECT id FROM mailroom_last_drawn_token()")
                            .value<std::int64_t>();
  fix.sequence_after = std::max(fix.sequence_before, fix.newest_token);
  for (const auto& missed : fix.queues)
    fix.sequence_after = std::max(fix.sequence_after, missed.cursor);
  fix.others = queue::read_sequences(transaction);
  std::erase_if(fix.others, [](const queue::TableSequence& sequence) {
    return !sequence.is_behind() || sequence.table == "tokens";
  });
  return fix;
}

/// Blocks claims and inserts. An INSERT locks its table first, so afterwards no transaction has invisible
/// tokens or draws an id.
void keep_others_out(pqxx::transaction_base& transaction) {
  for (const auto& queue :
       db::Connection::execute(transaction, "SELECT job_type FROM jobs ORDER BY 1").values<std::string>())
    db::Connection::execute(transaction, "SELECT mailroom_lock_queue($1)", queue);
  db::Connection::execute(transaction, "SET LOCAL lock_timeout = '5s'");
  db::Connection::execute(transaction, "LOCK TABLE tokens IN SHARE ROW EXCLUSIVE MODE");
}

/// The missed tokens that are due; with `extension` above 0 also those that only their expiry keeps from
/// being due.
std::vector<std::int64_t> find_missed(pqxx::transaction_base& transaction, std::chrono::seconds extension,
                                      const std::string& queue) {
  return db::Connection::execute(transaction,
                                 fmt::format(R"(
SELECT id FROM ({}) missed
WHERE state = 'due' OR (state = 'expired' AND revivable AND $2::bigint > 0)
ORDER BY id)",
                                             missed_tokens_sql(extension)),
                                 queue, extension.count())
      .values<std::int64_t>();
}

void extend(pqxx::transaction_base& transaction, const std::vector<std::int64_t>& ids,
            std::chrono::seconds extension) {
  if (extension.count() == 0) return;
  db::Connection::execute(transaction, R"(
UPDATE tokens SET expires_at = clock.now + $2::bigint
FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now) clock
WHERE id = ANY ($1::bigint[]) AND expires_at <= clock.now)",
                          db::array_text(ids), extension.count());
}

std::string details_of(const SequenceFix& fix, const MissedTokens& missed) {
  auto details = nlohmann::json::object();
  // Tells that ids came again: see mailroom_id_reuses().
  if (fix.concerns_tokens())
    details = {{"sequence_before", fix.sequence_before}, {"sequence_after", fix.sequence_after}};
  for (const auto& sequence : fix.others)
    details["sequences"][sequence.name] = {{"before", sequence.position}, {"after", sequence.newest}};
  if (missed.revived > 0) details["revived"] = missed.revived;
  return plain_json(details);
}

/// Records one operation per queue, even if the queue has missed nothing.
void emit_missed(pqxx::transaction_base& transaction, const SequenceFix& fix, const MissedTokens& missed,
                 const std::vector<std::int64_t>& ids, const std::string& channel) {
  const auto details = details_of(fix, missed);
  if (replay_tokens(transaction, missed.queue, ids, details, channel) > 0) return;
  db::Connection::execute(transaction, R"(
SELECT mailroom_record_operation('replay', $1, jsonb_build_object(
  'cursor', $2::bigint, 'replayed', 0, 'ids', '{}', 'cut', '[]'::jsonb) || $3::jsonb))",
                          missed.queue, missed.cursor, details);
}

/// `error`, and who may do what this role may not.
Error for_another_role(db::Connection& connection, const db::DatabaseError& error) {
  const auto row = connection.run(
      "SELECT pg_get_userbyid(relowner) AS owner, current_user AS role FROM pg_class WHERE oid = 'tokens'::regclass")
                       [0];
  return Error(error.code(),
               fmt::format("{} may not set sequences: {}", shown_text(row.text("role")), error.what()),
               fmt::format("run it as {}, the owner of the tables, or as a role with the privileges of "
                           "mailroom_operator in docs/security.md",
                           shown_text(row.text("owner"))));
}

/// The error that names the session whose open transaction writes to tokens.
Error open_insert(db::Connection& connection) {
  const auto rows = connection.run(R"(
SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.relation = 'tokens'::regclass AND l.granted
  AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
  AND l.database = (SELECT d.oid FROM mailroom_this_database() d)
ORDER BY a.xact_start
LIMIT 1)");
  const auto who = rows.empty()
                       ? std::string("it has ended, or is prepared: see pg_prepared_xacts")
                       : fmt::format(
                             "it is pid {} ({}): wait until it ends, or end it with SELECT "
                             "pg_terminate_backend({});",
                             rows[0].text("pid"), rows[0].text("application_name"), rows[0].text("pid"));
  return Error(ExitCode::locked,
               "nothing was changed: a transaction that writes to tokens has been open for 5 s, and may hold "
               "tokens that are not visible yet",
               who);
}

}  // namespace

std::int64_t SequenceFix::to_emit() const {
  std::int64_t sum = 0;
  for (const auto& missed : queues)
    sum += missed.to_emit();
  return sum;
}

SequenceFix plan_sequence_fix(db::Connection& connection, std::chrono::seconds extension) {
  try {
    return connection.transact([&](pqxx::work& transaction) { return read_fix(transaction, extension); });
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::insufficient_privilege) throw;
    throw for_another_role(connection, error);
  }
}

SequenceFix check_sequence(db::Connection& connection) {
  return connection.transact(
      [&](pqxx::work& transaction) { return read_fix(transaction, {}, has_few_new_tokens(transaction)); });
}

SequenceFix carry_out_sequence_fix(db::Connection& connection, std::chrono::seconds extension,
                                   const queue::OperationAuthor& author, const std::string& channel) {
  try {
    return connection.transact([&](pqxx::work& transaction) {
      queue::set_author(transaction, author);
      keep_others_out(transaction);
      auto fix = read_fix(transaction, extension);
      queue::advance_sequences(transaction, fix.others);
      // Find all tokens before changing any: missed tokens are recognized by the transaction that wrote the
      // row.
      std::vector<std::vector<std::int64_t>> ids;
      for (const auto& missed : fix.queues)
        ids.push_back(find_missed(transaction, extension, missed.queue));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        extend(transaction, ids[i], extension);
        emit_missed(transaction, fix, fix.queues[i], ids[i], channel);
      }
      // Last, because a rollback does not undo it: while the sequence is behind, the problem stays visible.
      if (fix.sequence_after > fix.sequence_before)
        db::Connection::execute(transaction, "SELECT setval('tokens_id_seq', $1)", fix.sequence_after);
      return fix;
    });
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() == db::sqlstate::insufficient_privilege) throw for_another_role(connection, error);
    if (error.sqlstate() != db::sqlstate::lock_not_available) throw;
    throw open_insert(connection);
  }
}

}  // namespace mailroom::replay
