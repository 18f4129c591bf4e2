// One statement, which answers for a database without mailroom too.

#include "desk/desk_rights.hpp"

namespace mailroom::desk {

DeskRights read_desk_rights(db::Connection& connection) {
  const auto rows = connection.run(R"(
WITH t AS (SELECT to_regclass('tokens') AS tokens, to_regclass('mailroom_messages') AS messages,
  to_regclass('mailroom_batches') AS batches, to_regclass('mailroom_deliveries') AS deliveries, to_regclass('mailroom_gaps') AS gaps,
  to_regclass('mailroom_operations') AS operations, to_regclass('mailroom_suppressions') AS suppressions,
  to_regclass('mailroom_outcomes') AS outcomes,
  to_regprocedure('mailroom_cancel(bigint, text, text)') AS cancel,
  to_regprocedure('mailroom_reschedule(bigint, timestamptz)') AS reschedule)
SELECT coalesce(has_column_privilege(messages, 'recipients', 'SELECT') AND has_column_privilege(tokens, 'created_at', 'SELECT')
    AND has_table_privilege(batches, 'SELECT') AND has_table_privilege(deliveries, 'SELECT') AND has_table_privilege(operations, 'SELECT')
    AND has_table_privilege(suppressions, 'SELECT'), false) AS reads,
  coalesce(has_column_privilege(messages, 'text', 'SELECT') AND has_column_privilege(messages, 'data', 'SELECT'), false) AS reads_content,
  coalesce(has_column_privilege(messages, 'text', 'SELECT') AND has_table_privilege(outcomes, 'SELECT'), false) AS exports,
  coalesce(has_table_privilege(batches, 'INSERT') AND has_table_privilege(gaps, 'INSERT')
    AND has_any_column_privilege(operations, 'INSERT'), false) AS resends,
  coalesce(has_function_privilege(cancel, 'EXECUTE') AND has_table_privilege(messages, 'UPDATE'), false) AS cancels,
  coalesce(has_function_privilege(reschedule, 'EXECUTE') AND has_table_privilege(messages, 'UPDATE'), false) AS reschedules,
  coalesce(has_table_privilege(suppressions, 'INSERT') AND has_table_privilege(suppressions, 'DELETE')
    AND has_any_column_privilege(operations, 'INSERT'), false) AS suppresses
FROM t)");
  const auto row = rows[0];
  return {.reads = row.flag("reads"),
          .reads_content = row.flag("reads_content"),
          .resends = row.flag("resends"),
          .cancels = row.flag("cancels"),
          .reschedules = row.flag("reschedules"),
          .exports = row.flag("exports"),
          .suppresses = row.flag("suppresses")};
}

}  // namespace mailroom::desk
