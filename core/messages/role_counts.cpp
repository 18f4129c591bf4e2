// Reads the messages of the period alone, by the index on their creation.

#include "messages/role_counts.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "db/values.hpp"

namespace mailroom::messages {
namespace {

constexpr const char* counts_sql = R"(
SELECT m.enqueued_by AS role, extract(epoch FROM date_trunc('hour', m.created_at, 'UTC'))::bigint AS hour, count(*) AS messages,
  count(*) FILTER (WHERE m.created_at >= to_timestamp($2::bigint - 3600)) AS last_hour,
  sum(greatest(cardinality(m.recipients || m.cc || m.bcc), 1)) AS recipients, {} AS last_us
FROM mailroom_messages m WHERE m.created_at >= to_timestamp($1::bigint) AND m.created_at < to_timestamp($2::bigint)
GROUP BY 1, 2 ORDER BY 1, 2)";

}  // namespace

std::int64_t RoleCount::busiest_hour() const {
  std::int64_t most = 0;
  for (const auto& [hour, count] : hours)
    most = std::max(most, count.messages);
  return most;
}

std::vector<RoleCount> count_by_role_within(pqxx::transaction_base& transaction, Moment since, Moment until) {
  std::vector<RoleCount> counts;
  for (const auto& row : db::Connection::execute(
           transaction, fmt::format(counts_sql, db::microseconds_sql("max(m.created_at)")), in_seconds(since),
           in_seconds(until))) {
    auto role = row.text("role");
    if (counts.empty() || counts.back().role != role) counts.push_back({.role = std::move(role)});
    auto& count = counts.back();
    const MailCount hour{.messages = row.number("messages"), .recipients = row.number("recipients")};
    count.hours[row.moment<std::chrono::seconds>("hour")] = hour;
    count.all.messages += hour.messages;
    count.all.recipients += hour.recipients;
    count.last_hour += row.number("last_hour");
    count.last = std::max(count.last, row.moment<std::chrono::microseconds>("last_us"));
  }
  std::ranges::stable_sort(counts, std::ranges::greater(),
                           [](const RoleCount& count) { return count.all.messages; });
  return counts;
}

std::vector<RoleCount> count_by_role(db::Connection& connection, Moment since, Moment until) {
  return connection.alone([&](pqxx::transaction_base& transaction) {
    return count_by_role_within(transaction, since, until);
  });
}

}  // namespace mailroom::messages
