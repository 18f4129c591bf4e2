// Reads mailroom_bounces.

#include "status/came_back.hpp"

namespace mailroom {
namespace {

constexpr const char* reports_sql = R"(
SELECT count(*) FILTER (WHERE queue = $1 AND kind = 'hard'),
  count(*) FILTER (WHERE queue = $1 AND kind IN ('soft', 'undetermined')),
  count(*) FILTER (WHERE queue = $1 AND kind = 'complaint'),
  count(*) FILTER (WHERE queue = $1 AND kind = 'delivered'),
  count(*) FILTER (WHERE token IS NULL)
FROM mailroom_bounces WHERE at > clock_timestamp() - interval '1 hour')";

}  // namespace

CameBack read_came_back(pqxx::transaction_base& transaction, const std::string& queue) {
  const auto allowed = Connection::execute(transaction, R"(
SELECT bool_and(has_column_privilege('mailroom_bounces', c, 'SELECT')) AND NOT row_security_active('mailroom_bounces') FROM unnest(ARRAY['at', 'queue', 'token', 'kind']) c)");
  if (!allowed[0][0].as<bool>()) return {.is_known = false};
  const auto row = Connection::execute(transaction, reports_sql, queue)[0];
  return {.hard = row[0].as<std::int64_t>(),
          .bounced = row[1].as<std::int64_t>(),
          .complaints = row[2].as<std::int64_t>(),
          .delivered = row[3].as<std::int64_t>(),
          .unmatched = row[4].as<std::int64_t>()};
}

}  // namespace mailroom
