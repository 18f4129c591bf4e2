// Counts some thousand messages, and estimates more by the statistics of the server.

#include "status/scheduled_messages.hpp"

#include <algorithm>

#include "db/values.hpp"

namespace mailroom {

Milliseconds ScheduledMessages::overdue(Moment now) const {
  if (!next_at) return {};
  return std::max(std::chrono::floor<Milliseconds>(now - *next_at), Milliseconds{0});
}

ScheduledMessages read_scheduled_messages(pqxx::transaction_base& transaction) {
  constexpr std::int64_t exact_limit = 10'000;
  const auto allowed =
      Connection::execute(transaction, "SELECT has_table_privilege('mailroom_schedule', 'SELECT')");
  if (!allowed[0][0].as<bool>()) return {.is_known = false};
  const auto row = Connection::execute(transaction, R"(
SELECT (SELECT count(*) FROM (SELECT FROM mailroom_schedule ORDER BY send_after LIMIT $1::bigint + 1) s),
  (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'mailroom_schedule'::regclass),
  (SELECT floor(extract(epoch FROM send_after) * 1000)::bigint FROM mailroom_schedule ORDER BY send_after LIMIT 1))",
                                       exact_limit)[0];
  ScheduledMessages scheduled{.messages = row[0].as<std::int64_t>(),
                              .next_at = optional_moment_in<Milliseconds>(row[2])};
  scheduled.estimated = scheduled.messages > exact_limit;
  if (scheduled.estimated) scheduled.messages = std::max(scheduled.messages, row[1].as<std::int64_t>());
  return scheduled;
}

}  // namespace mailroom
