#include "feed/feed_snapshot.hpp"

#include "db/connection.hpp"
#include "feed/row_stream.hpp"

namespace mailroom {
namespace {

/// Reads `columns` of one table b by ranges of ids: each range is a condition of the index, and the ranges
/// come in order.
std::string ranges_sql(const std::string& columns, const std::string& table) {
  return "SELECT found.* FROM unnest($1::bigint[], $2::bigint[]) r (first, last), LATERAL (SELECT " +
         columns + " FROM " + table +
         " b WHERE b.id >= r.first AND b.id <= r.last ORDER BY b.id LIMIT $3::integer) found LIMIT "
         "$3::integer";
}

std::string table_of(Followed followed) {
  switch (followed) {
    case Followed::tokens:
      return "tokens";
    case Followed::batches:
      return "mailroom_batches";
    case Followed::operations:
      return "mailroom_operations";
  }
  throw std::logic_error("no such table");
}

std::optional<std::int64_t> moment_of(const pqxx::field& field) {
  if (field.is_null()) return std::nullopt;
  return field.as<std::int64_t>();
}

}  // namespace

const std::string batch_row_columns =
    "b.id, b.attempts, (extract(epoch FROM b.claimed_at) * 1000000)::bigint, "
    "(extract(epoch FROM b.emitted_at) * 1000000)::bigint, "
    "(extract(epoch FROM b.set_aside_at) * 1000000)::bigint, b.emitted, "
    "b.skipped_expired::bigint + b.skipped_consumed + b.skipped_status + b.skipped_invalid, "
    "NOT isempty(b.ids)";

BatchRow read_batch_row(const pqxx::row& row) {
  return {.id = row[0].as<std::int64_t>(),
          .attempts = row[1].as<int>(),
          .claimed_us = row[2].as<std::int64_t>(),
          .emitted_us = moment_of(row[3]),
          .set_aside_us = moment_of(row[4]),
          .emitted = row[5].as<std::int64_t>(),
          .skipped = row[6].as<std::int64_t>(),
          .holds_ids = row[7].as<bool>()};
}

FeedSnapshot::FeedSnapshot(pqxx::work& transaction) : transaction_(transaction) {
  static const std::string sql =
      std::string("SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text, ") + sequence_positions_sql;
  const auto row = Connection::execute(transaction, sql)[0];
  xmin_ = row[0].c_str();
  for (std::size_t i = 0; i < tops_.size(); ++i)
    tops_[i] = row[static_cast<int>(i) + 1].as<std::int64_t>();
}

void FeedSnapshot::tokens_in(const std::vector<IdRun>& ranges, const EachId& each) const {
  static const auto sql = ranges_sql("b.id, b.created_at", "tokens");
  read_ranges(transaction_, sql, ranges, [&](const auto& row) {
    const auto id = row[0].template as<std::int64_t>();
    each(id, EventKey{creation_order(row[1].template as<std::int64_t>()), id, EventWord::created});
  });
}

void FeedSnapshot::operations_in(const std::vector<IdRun>& ranges, const EachId& each) const {
  static const auto sql =
      ranges_sql("b.id, (extract(epoch FROM b.at) * 1000000)::bigint, b.kind", "mailroom_operations");
  read_ranges(transaction_, sql, ranges, [&](const auto& row) {
    const auto id = row[0].template as<std::int64_t>();
    std::optional<EventKey> event;
    if (const auto word = word_of_operation(row[2].c_str()))
      event = EventKey{row[1].template as<std::int64_t>(), id, *word};
    each(id, event);
  });
}

std::vector<BatchRow> FeedSnapshot::batches_in(const std::vector<IdRun>& ranges) const {
  static const auto sql = ranges_sql(batch_row_columns, "mailroom_batches");
  std::vector<BatchRow> batches;
  read_ranges(transaction_, sql, ranges, [&](const auto& row) { batches.push_back(read_batch_row(row)); });
  return batches;
}

std::vector<BatchRow> FeedSnapshot::batches(const std::vector<std::int64_t>& ids) const {
  static const auto sql = "SELECT " + batch_row_columns +
                          " FROM mailroom_batches b WHERE b.id = ANY ($1::bigint[]) ORDER BY b.id";
  std::vector<BatchRow> batches;
  if (ids.empty()) return batches;
  for (const auto& row : Connection::execute(transaction_, sql, array_text(ids)))
    batches.push_back(read_batch_row(row));
  return batches;
}

std::vector<BatchRow> FeedSnapshot::open_batches() const {
  static const auto sql = "SELECT " + batch_row_columns +
                          " FROM mailroom_batches b WHERE b.emitted_at IS NULL AND b.set_aside_at IS NULL";
  std::vector<BatchRow> batches;
  for (const auto& row : Connection::execute(transaction_, sql))
    batches.push_back(read_batch_row(row));
  return batches;
}

void FeedSnapshot::consumed_between(
    std::int64_t floor, std::int64_t ceiling, const std::string& xmin,
    const std::function<void(std::int64_t token, std::int64_t consumed_at)>& each) const {
  // A row that has become visible since an earlier snapshot was written by a transaction that was in progress
  // then or had not begun, or by one within it: none of these has an id older than that snapshot's xmin.
  stream_rows(
      transaction_,
      "SELECT t.id, t.consumed_at FROM tokens t WHERE t.consumed_at >= $1::bigint "
      "AND t.consumed_at <= $2::bigint AND age(t.xmin) <= age($3::text::xid)",
      [&](const auto& row) { each(row[0].template as<std::int64_t>(), row[1].template as<std::int64_t>()); },
      floor, ceiling, xmin);
}

std::int64_t FeedSnapshot::newest_id(Followed followed) const {
  const auto rows = Connection::execute(
      transaction_, "SELECT id FROM " + table_of(followed) + " WHERE id <= $1 ORDER BY id DESC LIMIT 1",
      tops_.at(index_of(followed)));
  return rows.empty() ? 0 : rows[0][0].as<std::int64_t>();
}

std::vector<IdRun> FeedSnapshot::gaps_between(Followed followed, std::int64_t after,
                                              std::int64_t newest) const {
  std::vector<IdRun> gaps;
  if (after >= newest) return gaps;
  const auto rows = Connection::execute(
      transaction_,
      "SELECT before + 1, id - 1 FROM (SELECT id, lag(id, 1, $1::bigint) OVER (ORDER BY id) AS before FROM " +
          table_of(followed) + " WHERE id > $1 AND id <= $2) ids WHERE id > before + 1 ORDER BY id",
      after, newest);
  for (const auto& row : rows)
    gaps.push_back({row[0].as<std::int64_t>(), row[1].as<std::int64_t>()});
  return gaps;
}

}  // namespace mailroom
