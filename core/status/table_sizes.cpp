// Sizes come from the files, rows from the statistics, and growth from the times that rows have.

#include "status/table_sizes.hpp"

#include <algorithm>

#include "db/values.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::status {
namespace {

constexpr const char* sizes_sql = R"(
SELECT c.relname AS name, pg_table_size(c.oid) AS bytes, pg_indexes_size(c.oid) AS index_bytes,
  coalesce(pg_stat_get_live_tuples(c.oid), 0) AS rows, coalesce(pg_stat_get_dead_tuples(c.oid), 0) AS dead_rows
FROM pg_class c
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r' AND c.relname = ANY ($1::text[])
ORDER BY pg_total_relation_size(c.oid) DESC, c.relname)";

// The order of ids is about that of time, and an index on the time knows which blocks have the last week.
constexpr const char* growth_sql = R"(
SELECT 'tokens' AS name, count(*) FILTER (WHERE created_at >= extract(epoch FROM now()) - 86400) AS last_day,
  count(*) AS last_week
FROM tokens WHERE created_at >= (extract(epoch FROM now()) - 7 * 86400)::bigint
UNION ALL
SELECT 'mailroom_batches', count(*) FILTER (WHERE claimed_at >= now() - interval '1 day'), count(*)
FROM mailroom_batches WHERE claimed_at >= now() - interval '7 days'
UNION ALL
SELECT 'mailroom_deliveries', count(*) FILTER (WHERE last_at >= now() - interval '1 day'), count(*)
FROM mailroom_deliveries WHERE last_at >= now() - interval '7 days'
UNION ALL
SELECT 'mailroom_messages', count(*) FILTER (WHERE created_at >= now() - interval '1 day'), count(*)
FROM mailroom_messages WHERE created_at >= now() - interval '7 days'
UNION ALL
SELECT 'mailroom_attachments', count(*) FILTER (WHERE m.created_at >= now() - interval '1 day'), count(*)
FROM mailroom_messages m JOIN mailroom_attachments f ON f.message = m.id WHERE m.created_at >= now() - interval '7 days')";

}  // namespace

std::int64_t TableSize::bytes_of(std::int64_t some) const {
  const auto all = std::max(rows, some);
  if (all == 0) return 0;
  return static_cast<std::int64_t>(static_cast<double>(total()) * static_cast<double>(some) /
                                   static_cast<double>(all));
}

std::vector<TableSize> read_table_sizes(pqxx::transaction_base& transaction) {
  std::vector<TableSize> sizes;
  for (const auto& row :
       db::Connection::execute(transaction, sizes_sql, db::array_text(schema::mailroom_tables()))) {
    sizes.push_back({.name = row.text("name"),
                     .bytes = row.number("bytes"),
                     .index_bytes = row.number("index_bytes"),
                     .rows = row.number("rows"),
                     .dead_rows = row.number("dead_rows")});
  }
  return sizes;
}

std::optional<std::chrono::seconds> read_oldest_age(pqxx::transaction_base& transaction) {
  const auto rows = db::Connection::execute(
      transaction,
      "SELECT greatest(floor(extract(epoch FROM clock_timestamp()))::bigint - created_at, 0) FROM tokens ORDER BY id LIMIT 1");
  if (rows.empty()) return std::nullopt;
  return std::chrono::seconds(rows.value<std::int64_t>());
}

std::int64_t count_old_attachments(pqxx::transaction_base& transaction, Milliseconds age) {
  return db::Connection::execute(transaction, R"(
SELECT count(*) FROM mailroom_messages m JOIN mailroom_attachments f ON f.message = m.id
WHERE m.created_at < now() - make_interval(secs => $1::bigint))",
                                 std::chrono::floor<std::chrono::seconds>(age).count())
      .value<std::int64_t>();
}

void count_growth(pqxx::transaction_base& transaction, std::vector<TableSize>& sizes) {
  for (const auto& row : db::Connection::execute(transaction, growth_sql)) {
    const auto table = std::ranges::find(sizes, row.text("name"), &TableSize::name);
    if (table == sizes.end()) continue;
    table->last_day = row.number("last_day");
    table->last_week = row.number("last_week");
  }
}

}  // namespace mailroom::status
