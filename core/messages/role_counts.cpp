// Looks at the messages of the period alone: ids are in the order in which they were asked for.

#include "messages/role_counts.hpp"

#include <fmt/format.h>

#include "db/values.hpp"

namespace mailroom::messages {

std::vector<RoleCount> count_by_role(db::Connection& connection, Moment since, Moment until) {
  std::vector<RoleCount> counts;
  for (const auto& row : connection.run(fmt::format(R"(
WITH hours AS (
  SELECT m.enqueued_by AS role, date_trunc('hour', m.created_at, 'UTC') AS hour, count(*) AS messages,
    count(*) FILTER (WHERE m.created_at >= to_timestamp($2::bigint - 3600)) AS last_hour,
    sum(greatest(coalesce(cardinality(m.recipients || m.cc || m.bcc), 0), 1)) AS recipients, max(m.created_at) AS last
  FROM mailroom_messages m WHERE m.created_at >= to_timestamp($1::bigint) AND m.created_at < to_timestamp($2::bigint) GROUP BY 1, 2)
SELECT role, sum(messages)::bigint AS messages, sum(recipients)::bigint AS recipients, sum(last_hour)::bigint AS last_hour,
  max(messages)::bigint AS busiest_hour, {} AS last_us
FROM hours GROUP BY role ORDER BY 2 DESC, 1)",
                                                    db::microseconds_sql("max(last)")),
                                        in_seconds(since), in_seconds(until))) {
    counts.push_back({.role = row.text("role"),
                      .messages = row.number("messages"),
                      .recipients = row.number("recipients"),
                      .last_hour = row.number("last_hour"),
                      .busiest_hour = row.number("busiest_hour"),
                      .last = row.moment<std::chrono::microseconds>("last_us")});
  }
  return counts;
}

}  // namespace mailroom::messages
