// Builds one statement for all sequences that the role may read, since naming any other would fail.

#include "queue/sequences.hpp"

namespace mailroom {
namespace {

/// The statement that reads them. A direct reference to a sequence or a table without the privilege would
/// fail. With USAGE alone, as a collector has it, a sequence that gave no id yet counts as at 0.
constexpr const char* statement_sql = R"(
SELECT string_agg(format(
  CASE WHEN s.is_readable
    THEN 'SELECT %1$L, %2$L, CASE WHEN is_called THEN last_value ELSE last_value - 1 END, coalesce((%3$s), 0) FROM %4$s'
    ELSE 'SELECT %1$L, %2$L, coalesce(pg_sequence_last_value(%4$L), 0), coalesce((%3$s), 0)' END,
  s.name, s.owner, s.newest, s.sequence), ' UNION ALL ' ORDER BY s.n)
FROM (
  SELECT n, owner, has_sequence_privilege(c.oid, 'SELECT') AS is_readable, c.relname AS name, c.oid::regclass AS sequence,
    CASE owner WHEN 'mailroom_gaps' THEN format('SELECT %I.mailroom_newest_gap()', current_schema())
      ELSE format('SELECT max(id) FROM %I.%I', current_schema(), owner) END AS newest
  FROM unnest('{tokens,mailroom_batches,mailroom_gaps,mailroom_operations,mailroom_schema_history,accounts}'::text[])
         WITH ORDINALITY t (owner, n),
    LATERAL (SELECT to_regclass(format('%I.%I', current_schema(), owner)) AS oid) o,
    LATERAL (SELECT CASE WHEN has_column_privilege(o.oid::oid, 'id', 'SELECT') AND NOT row_security_active(o.oid::oid)
                    THEN pg_get_serial_sequence(o.oid::regclass::text, 'id')::regclass END AS oid) q
    JOIN pg_class c ON c.oid = q.oid
  WHERE CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(c.oid, 'SELECT, USAGE') END) s)";

}  // namespace

std::string TableSequence::consequence() const {
  if (table == "tokens") return "the next INSERT fails";
  if (table == "accounts") return "an INSERT without an id of its own fails";
  if (table == "mailroom_operations") return "suspensions and operators' commands fail";
  if (table == "mailroom_schema_history") return "the next migration sets it ahead";
  return "claims fail";
}

std::vector<TableSequence> read_sequences(pqxx::transaction_base& transaction) {
  std::vector<TableSequence> sequences;
  const auto statement = Connection::execute(transaction, statement_sql)[0][0];
  if (statement.is_null()) return sequences;
  for (const auto& row : Connection::execute(transaction, statement.c_str())) {
    sequences.push_back({.name = row[0].c_str(),
                         .table = row[1].c_str(),
                         .position = row[2].as<std::int64_t>(),
                         .newest = row[3].as<std::int64_t>()});
  }
  return sequences;
}

void advance_sequences(pqxx::transaction_base& transaction, const std::vector<TableSequence>& sequences) {
  for (const auto& sequence : sequences) {
    if (!sequence.is_behind()) continue;
    Connection::execute(
        transaction,
        "SELECT setval(pg_get_serial_sequence(format('%I.%I', current_schema(), $1::text), 'id'), $2)",
        sequence.table, sequence.newest);
  }
}

std::vector<std::string> statements_for_ordered_ids(Connection& connection) {
  std::vector<std::string> statements;
  for (const auto& row : connection.run(R"(
SELECT format('ALTER SEQUENCE %I.%I CACHE 1 INCREMENT 1 NO CYCLE;', current_schema(), c.relname)
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
  AND c.relname IN ('mailroom_batches_id_seq', 'mailroom_gaps_id_seq')
  AND NOT (s.seqcache = 1 AND s.seqincrement = 1 AND NOT s.seqcycle)
ORDER BY 1)"))
    statements.emplace_back(row[0].c_str());
  return statements;
}

}  // namespace mailroom
