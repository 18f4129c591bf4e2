// A reader without a grant on the column still gets the rest of the report.

#include "audit/trace_ids.hpp"

#include "base/encoded_text.hpp"
#include "trace/traceparent.hpp"

namespace mailroom::audit {

std::map<std::int64_t, std::string> read_trace_ids(pqxx::transaction_base& transaction,
                                                   const std::vector<std::int64_t>& tokens) {
  std::map<std::int64_t, std::string> ids;
  const auto may_read =
      db::Connection::execute(transaction, "SELECT has_column_privilege('tokens', 'traceparent', 'SELECT')");
  if (tokens.empty() || !may_read.value<bool>()) return ids;
  for (const auto& row : db::Connection::execute(
           transaction,
           "SELECT id, traceparent FROM tokens WHERE id = ANY ($1::bigint[]) AND traceparent IS NOT NULL",
           db::array_text(tokens))) {
    if (const auto parent = trace::parse_traceparent(row.text("traceparent")))
      ids[row.number("id")] = hex_text(parent->trace);
  }
  return ids;
}

}  // namespace mailroom::audit
