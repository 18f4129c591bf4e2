// Reads the messages of the period alone, by the index on their creation.

#include "messages/role_counts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "db/values.hpp"

namespace mailroom::messages {
namespace {

constexpr const char* counts_sql = R"(
SELECT m.enqueued_by AS role, extract(epoch FROM date_trunc('hour', m.created_at, 'UTC'))::bigint AS hour, count(*) AS messages,
  count(*) FILTER (WHERE m.created_at >= to_timestamp($2::bigint - 3600)) AS last_hour,
  sum(greatest(cardinality(m.recipients || m.cc || m.bcc), 1)) AS recipients, {} AS last_us
FROM mailroom_messages m WHERE m.created_at >= to_timestamp($1::bigint) AND m.created_at < to_timestamp($2::bigint) AND m.id > $3
GROUP BY 1, 2 ORDER BY 1, 2)";

constexpr std::int64_t most_recent = 100'000;

std::vector<RoleCount> count_beyond(pqxx::transaction_base& transaction, Moment since, Moment until,
                                    std::int64_t id) {
  std::vector<RoleCount> counts;
  for (const auto& row : db::Connection::execute(
           transaction, fmt::format(counts_sql, db::microseconds_sql("max(m.created_at)")), in_seconds(since),
           in_seconds(until), id)) {
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

}  // namespace

std::int64_t RoleCount::busiest_hour() const {
  std::int64_t most = 0;
  for (const auto& [hour, count] : hours)
    most = std::max(most, count.messages);
  return most;
}

std::vector<RoleCount> count_by_role(db::Connection& connection, Moment since, Moment until) {
  return connection.alone([&](pqxx::transaction_base& transaction) {
    return count_beyond(transaction, since, until, std::numeric_limits<std::int64_t>::min());
  });
}

RecentRoles read_recent_roles(db::Connection& connection) {
  return connection.alone([&](pqxx::transaction_base& transaction) {
    RecentRoles recent;
    recent.is_known = db::Connection::execute(transaction, R"(
SELECT has_column_privilege('mailroom_messages', 'enqueued_by', 'SELECT') AND has_column_privilege('mailroom_messages', 'recipients', 'SELECT')
  AND NOT row_security_active('mailroom_messages'))")
                          .value<bool>();
    if (!recent.is_known) return recent;
    const auto row = db::Connection::execute(transaction,
                                             fmt::format(R"(
SELECT n.id - $1::bigint AS last_uncounted, coalesce((SELECT m.created_at FROM mailroom_messages m
  WHERE m.id <= n.id - $1::bigint ORDER BY m.id DESC LIMIT 1) > now() - interval '1 hour', false) AS is_partial, {} AS now_us
FROM (SELECT coalesce(max(id), 0) AS id FROM mailroom_messages) n)",
                                                         db::microseconds_sql("now()")),
                                             most_recent)[0];
    const auto until = row.moment<std::chrono::microseconds>("now_us") + std::chrono::seconds(1);
    recent.is_partial = row.flag("is_partial");
    recent.roles =
        count_beyond(transaction, until - std::chrono::hours(1), until, row.number("last_uncounted"));
    return recent;
  });
}

}  // namespace mailroom::messages
