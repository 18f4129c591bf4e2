// Reads pg_trigger, pg_sequence and pg_sequences, as far as the role may.

#include "queue/preconditions.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "db/search_path.hpp"
#include "queue/action.hpp"

namespace mailroom::queue {
namespace {

/// The statement that reads them. A direct reference to a sequence or a table without the privilege would
/// fail. With USAGE alone, as a collector has it, a sequence that gave no id yet counts as at 0.
constexpr const char* statement_sql = R"(
SELECT string_agg(format(
  CASE WHEN s.is_readable
    THEN 'SELECT %1$L AS name, %2$L AS owner, CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS position, coalesce((%3$s), 0) AS newest FROM %4$s'
    ELSE 'SELECT %1$L AS name, %2$L AS owner, coalesce(pg_sequence_last_value(%4$L), 0) AS position, coalesce((%3$s), 0) AS newest' END,
  s.name, s.owner, s.newest, s.sequence), ' UNION ALL ' ORDER BY s.n)
FROM (
  SELECT n, owner, has_sequence_privilege(c.oid, 'SELECT') AS is_readable, c.relname AS name, c.oid::regclass AS sequence,
    CASE owner WHEN 'mailroom_gaps' THEN format('SELECT %I.mailroom_newest_gap()', current_schema())
      ELSE format('SELECT max(id) FROM %I.%I', current_schema(), owner) END AS newest
  FROM unnest('{tokens,mailroom_batches,mailroom_gaps,mailroom_operations,mailroom_schema_history,mailroom_messages,mailroom_outcomes,mailroom_bounces,accounts}'::text[])
         WITH ORDINALITY t (owner, n),
    LATERAL (SELECT to_regclass(format('%I.%I', current_schema(), owner)) AS oid) o,
    LATERAL (SELECT CASE WHEN has_column_privilege(o.oid::oid, 'id', 'SELECT') AND NOT row_security_active(o.oid::oid)
                    THEN pg_get_serial_sequence(o.oid::regclass::text, 'id')::regclass END AS oid) q
    JOIN pg_class c ON c.oid = q.oid
  WHERE CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(c.oid, 'SELECT, USAGE') END) s)";

/// The actions that queue $1 takes, with a path or without one ($2), if tokens of one of them wait, among the
/// first 1,000 of each range: the next claims meet what is behind those.
constexpr const char* waiting_actions_sql = R"(
WITH queue AS MATERIALIZED (SELECT *, mailroom_queue_actions($1) AS actions FROM mailroom_queue_state($1)),
taken AS MATERIALIZED (
  SELECT x.action FROM mailroom_actions x, queue
  WHERE (x.path IS NOT NULL) = $2::boolean AND (queue.actions IS NULL OR x.action = ANY (queue.actions::text[])))
SELECT action FROM taken
WHERE EXISTS (
  SELECT FROM queue, LATERAL (
    SELECT int8range(queue.cursor, NULL, '()') AS ids
    UNION ALL
    SELECT unnest(h.ids) FROM mailroom_gaps h WHERE h.id = ANY (queue.gap_ids)
    UNION ALL
    SELECT unnest(mailroom_batch_ids(b.ids, b.ids_mask)) FROM mailroom_batches b
    WHERE b.queue = $1 AND b.emitted_at IS NULL AND b.dead_at IS NULL) r, LATERAL (
    SELECT FROM (
      SELECT t.secret, t.action, t.consumed_at, t.expires_at FROM tokens t
      WHERE t.id >= lower(r.ids) AND (upper_inf(r.ids) OR t.id < upper(r.ids))
      ORDER BY t.id
      LIMIT 1000) t
    WHERE (t.secret IS NOT NULL) = $2::boolean AND t.action::text IN (SELECT action FROM taken)
      AND mailroom_is_live(t.consumed_at, t.expires_at, (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint))
    LIMIT 1) waiting)
ORDER BY action)";

/// Their short names.
std::vector<std::string> waiting_actions(db::Connection& connection, const std::string& queue,
                                         bool with_path) {
  std::vector<std::string> actions;
  for (const auto& row : connection.run(waiting_actions_sql, queue, with_path))
    actions.push_back(short_action_name(row.text("action")));
  return actions;
}

}  // namespace

TriggerState trigger_state(db::Connection& connection, const std::string& table, const std::string& trigger) {
  const auto rows = connection.run(
      "SELECT tgenabled IN ('O', 'A') FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = $2", table,
      trigger);
  if (rows.empty()) return TriggerState::missing;
  return rows.value<bool>() ? TriggerState::enabled : TriggerState::disabled;
}

void require_ids_to_spare(db::Connection& connection) {
  // Without privileges on the sequence the view shows no value, while reading the sequence itself would fail.
  const auto rows = connection.run(R"(
SELECT FROM pg_sequences
WHERE schemaname = current_schema() AND sequencename = 'tokens_id_seq' AND last_value = 9223372036854775807)");
  if (rows.empty()) return;
  throw Error(ExitCode::schema,
              "the sequence tokens_id_seq is at 9223372036854775807, the largest possible id",
              db::in_schema(
                  "DELETE FROM @.tokens WHERE id = 9223372036854775807; "
                  "SELECT setval('@.tokens_id_seq', coalesce((SELECT max(id) FROM @.tokens), 0) + 1, false);",
                  db::quoted_schema(connection)));
}

std::string enable_trigger_statement(const std::string& schema, std::string_view table,
                                     std::string_view trigger) {
  return fmt::format("ALTER TABLE {}.{} ENABLE TRIGGER {};", schema, table, trigger);
}

Error no_place_in_csv(const std::vector<std::string>& actions) {
  const auto names = joined(actions, ",");
  return {ExitCode::configuration,
          fmt::format("a line of CSV has no place for {} tokens, which have no link", names),
          fmt::format(
              "give them a queue of their own, with a sender: mailroom queue create messages --action {}; or "
              "use --format jsonl",
              names)};
}

void require_signed_tokens(db::Connection& connection, const std::string& queue) {
  const auto actions = waiting_actions(connection, queue, false);
  if (!actions.empty()) throw no_place_in_csv(actions);
}

void require_unsigned_tokens(db::Connection& connection, const std::string& queue) {
  const auto actions = waiting_actions(connection, queue, true);
  if (actions.empty()) return;
  throw Error(
      ExitCode::configuration,
      fmt::format("send.link is not set, and mails with a link wait in the queue {}, which takes {}", queue,
                  joined(actions, ",")),
      "for example send.link: https://app.example/{action}?token={token}; mailroom.yaml.example describes it");
}

std::string ids_in_order_statement(db::Connection& connection) {
  return fmt::format("ALTER SEQUENCE {} CACHE 1 INCREMENT 1 NO CYCLE;",
                     db::qualified_name(connection, "tokens_id_seq"));
}

bool gives_ids_in_order(db::Connection& connection) {
  return connection
      .run(R"(
SELECT seqcache = 1 AND seqincrement = 1 AND NOT seqcycle FROM pg_sequence
WHERE seqrelid = 'tokens_id_seq'::regclass)")
      .value<bool>();
}

std::string TableSequence::consequence() const {
  if (table == "tokens") return "the next INSERT fails";
  if (table == "accounts") return "an INSERT without an id of its own fails";
  if (table == "mailroom_messages") return "transactions that ask for a mail fail";
  if (table == "mailroom_outcomes") return "what became of mails is not recorded";
  if (table == "mailroom_bounces") return "what comes back is not recorded";
  if (table == "mailroom_operations") return "suspensions and operators' commands fail";
  if (table == "mailroom_schema_history") return "the next migration sets it ahead";
  return "claims fail";
}

std::vector<TableSequence> read_sequences(pqxx::transaction_base& transaction) {
  std::vector<TableSequence> sequences;
  const auto statement = db::Connection::execute(transaction, statement_sql).text();
  if (statement.empty()) return sequences;
  for (const auto& row : db::Connection::execute(transaction, statement)) {
    sequences.push_back({.name = row.text("name"),
                         .table = row.text("owner"),
                         .position = row.number("position"),
                         .newest = row.number("newest")});
  }
  return sequences;
}

void advance_sequences(pqxx::transaction_base& transaction, const std::vector<TableSequence>& sequences) {
  for (const auto& sequence : sequences) {
    if (!sequence.is_behind()) continue;
    db::Connection::execute(
        transaction,
        "SELECT setval(pg_get_serial_sequence(format('%I.%I', current_schema(), $1::text), 'id'), $2)",
        sequence.table, sequence.newest);
  }
}

std::vector<std::string> statements_for_ordered_ids(db::Connection& connection) {
  return connection
      .run(R"(
SELECT format('ALTER SEQUENCE %I.%I CACHE 1 INCREMENT 1 NO CYCLE;', current_schema(), c.relname)
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
  AND c.relname IN ('mailroom_batches_id_seq', 'mailroom_gaps_id_seq')
  AND NOT (s.seqcache = 1 AND s.seqincrement = 1 AND NOT s.seqcycle)
ORDER BY 1)")
      .values<std::string>();
}

}  // namespace mailroom::queue
