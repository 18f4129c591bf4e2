// The queries on mailroom_batches, and the JSON of earlier attempts.

#include "queue/batch_lookup.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "db/values.hpp"

namespace mailroom::queue {
namespace {

constexpr std::chrono::hours grace{1};
constexpr Moment last_moment = year_10000 - std::chrono::seconds(1);

/// `ids` is the SQL expression for the requested ids of a batch.
std::string columns(const std::string& ids) {
  return fmt::format(R"(
  id, queue, ({})::text AS tokens,
  (SELECT coalesce(sum(upper(g) - lower(g)), 0)::bigint FROM unnest(mailroom_batch_ids(ids, ids_mask) + skipped_ids) g) AS size,
  claimed_by, collector, attempts, {} AS claimed_us, {} AS emitted_us, {} AS dead_us,
  emitted, skipped_expired, skipped_consumed, skipped_status, skipped_invalid, skipped_ids::text AS skipped_tokens,
  CASE jsonb_typeof(earlier_attempts) WHEN 'array' THEN (
    SELECT coalesce(jsonb_agg(e || jsonb_build_object('claimed_us', {}) ORDER BY n), '[]')::text
    FROM jsonb_array_elements(earlier_attempts) WITH ORDINALITY AS earlier (e, n)) ELSE '' END AS abandoned, key)",
                     ids, db::microseconds_sql("claimed_at"), db::microseconds_sql("emitted_at"),
                     db::microseconds_sql("dead_at"),
                     db::microseconds_sql("(e->>'claimed_at')::timestamptz"));
}

/// `rows` is earlier_attempts as columns() selects it; each attempt was taken over when the next one began.
std::vector<AbandonedAttempt> read_abandoned(const std::string& rows, Moment claimed_at) {
  std::vector<AbandonedAttempt> attempts;
  if (rows.empty()) return attempts;
  for (const auto& row : parse_json(sound_utf8(rows))) {
    const auto key = row.value("key", nlohmann::json());
    attempts.push_back(
        {.attempt = row.at("attempt").get<int>(),
         .claimed_by = row.at("claimed_by").get<std::string>(),
         .collector = row.at("collector").get<int>(),
         .key = key.is_string() ? key.get<std::string>() : "",
         .claimed_at = bounded_moment(std::chrono::microseconds(row.at("claimed_us").get<std::int64_t>())),
         .taken_over_at = claimed_at});
    if (attempts.size() > 1) attempts[attempts.size() - 2].taken_over_at = attempts.back().claimed_at;
  }
  return attempts;
}

std::vector<BatchRecord> read(const db::Rows& rows) {
  std::vector<BatchRecord> batches;
  for (const auto& row : rows) {
    const auto claimed_at = row.moment<std::chrono::microseconds>("claimed_us");
    batches.push_back({.id = row.number("id"),
                       .queue = row.text("queue"),
                       .tokens = selection::parse_id_ranges(row.text("tokens")),
                       .size = row.number("size"),
                       .claimed_by = row.text("claimed_by"),
                       .key = row.text("key"),
                       .collector = row.number<int>("collector"),
                       .attempts = row.number<int>("attempts"),
                       .claimed_at = claimed_at,
                       .emitted_at = row.optional_moment<std::chrono::microseconds>("emitted_us"),
                       .dead_at = row.optional_moment<std::chrono::microseconds>("dead_us"),
                       .emitted = row.number<int>("emitted"),
                       .skipped = {.expired = row.number("skipped_expired"),
                                   .consumed = row.number("skipped_consumed"),
                                   .wrong_status = row.number("skipped_status"),
                                   .invalid = row.number("skipped_invalid")},
                       .skipped_ids = selection::parse_id_ranges(row.text("skipped_tokens")),
                       .abandoned = read_abandoned(row.text("abandoned"), claimed_at)});
  }
  return batches;
}

/// Tokens to search for in the same batches.
struct Search {
  Moment since{};
  Moment until{};
  std::vector<std::int64_t> tokens{};
};

std::vector<Search> merge(std::vector<TokenSpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.since < b.since; });
  std::vector<Search> searches;
  for (const auto& span : spans) {
    if (searches.empty() || span.since > searches.back().until) {
      searches.push_back({.since = span.since, .until = span.until});
    }
    searches.back().until = std::max(searches.back().until, span.until);
    searches.back().tokens.push_back(span.token);
  }
  return searches;
}

std::int64_t as_time(Moment moment) {
  return in_seconds(std::clamp(moment, Moment(), last_moment));
}

std::vector<std::int64_t> batches_of(pqxx::transaction_base& transaction, const Search& search) {
  return db::Connection::execute(
             transaction,
             "SELECT mailroom_batches_of($1::bigint[], to_timestamp($2::bigint), to_timestamp($3::bigint))",
             db::array_text(search.tokens), as_time(search.since),
             as_time(search.until + std::chrono::seconds(1)))
      .values<std::int64_t>();
}

/// The ids of one batch without duplicates.
struct Parts {
  std::set<std::int64_t> own;
  std::set<std::int64_t> of_others;
  std::set<std::int64_t> unsure;
};

bool came_again(const std::vector<IdReuse>& reuses, const BatchRecord& batch, std::int64_t id) {
  return std::any_of(reuses.begin(), reuses.end(), [&](const auto& reuse) {
    return id <= reuse.highest && batch.claimed_at < reuse.until;
  });
}

Parts divide(const BatchRecord& batch, const std::vector<TokenSpan>& spans,
             const std::vector<IdReuse>& reuses) {
  const auto second = std::chrono::floor<std::chrono::seconds>(batch.claimed_at);
  Parts parts;
  for (const auto& span : spans) {
    if (!selection::contains(batch.tokens, span.token)) continue;
    if (span.made && *span.made > second) {
      parts.of_others.insert(span.token);
      continue;
    }
    parts.own.insert(span.token);
    if ((!span.made || *span.made == second) && came_again(reuses, batch, span.token))
      parts.unsure.insert(span.token);
  }
  return parts;
}

std::vector<selection::IdRange> ranges_of(const std::set<std::int64_t>& ids) {
  return selection::to_id_ranges({ids.begin(), ids.end()});
}

}  // namespace

BatchRecord as_claimed(BatchRecord batch) {
  batch.emitted_at.reset();
  batch.dead_at.reset();
  batch.emitted = 0;
  return batch;
}

BatchRecord as_claimed(BatchRecord batch, const AbandonedAttempt& attempt) {
  batch.claimed_by = attempt.claimed_by;
  batch.collector = attempt.collector;
  batch.key = attempt.key;
  batch.attempts = attempt.attempt;
  batch.claimed_at = attempt.claimed_at;
  return as_claimed(std::move(batch));
}

TokenSpan token_span(std::int64_t token, Moment created_at, Moment expires_at) {
  const auto made = std::clamp(created_at, Moment(), last_moment - grace);
  const auto end = std::clamp(expires_at, made + grace, last_moment);
  return {.token = token, .since = made - grace, .until = end + grace};
}

std::vector<BatchRecord> find_batches(pqxx::transaction_base& transaction,
                                      const std::vector<TokenSpan>& spans) {
  std::vector<std::int64_t> tokens;
  for (const auto& span : spans)
    tokens.push_back(span.token);
  std::vector<std::int64_t> found;
  for (const auto& search : merge(spans)) {
    const auto more = batches_of(transaction, search);
    found.insert(found.end(), more.begin(), more.end());
  }
  auto batches = read(db::Connection::execute(
      transaction,
      "SELECT " + columns("(mailroom_batch_ids(ids, ids_mask) + skipped_ids) * $2::int8multirange") +
          " FROM mailroom_batches WHERE id = ANY ($1::bigint[]) ORDER BY id",
      db::array_text(found), selection::multirange_text(tokens)));
  separate_reused_ids(spans, find_id_reuses(transaction), batches);
  return batches;
}

std::vector<BatchRecord> find_batches(pqxx::transaction_base& transaction,
                                      const std::vector<std::int64_t>& ids) {
  return read(db::Connection::execute(transaction,
                                      "SELECT " + columns("mailroom_batch_ids(ids, ids_mask)") +
                                          " FROM mailroom_batches WHERE id = ANY ($1::bigint[])",
                                      db::array_text(ids)));
}

std::optional<BatchRecord> find_batch(pqxx::transaction_base& transaction, std::int64_t id) {
  const auto batches =
      read(db::Connection::execute(transaction,
                                   "SELECT " + columns("mailroom_batch_ids(ids, ids_mask) + skipped_ids") +
                                       " FROM mailroom_batches WHERE id = $1",
                                   id));
  if (batches.empty()) return std::nullopt;
  return batches.front();
}

std::vector<BatchRecord> list_batches(pqxx::transaction_base& transaction, Moment since, Moment until,
                                      std::int64_t limit) {
  // A row without ids and skipped tokens is the state after a rewind.
  return read(db::Connection::execute(transaction,
                                      "SELECT " + columns("mailroom_batch_ids(ids, ids_mask) + skipped_ids") +
                                          R"(
FROM mailroom_batches
WHERE claimed_at >= to_timestamp($1::bigint) AND claimed_at < to_timestamp($2::bigint)
  AND (NOT isempty(ids) OR emitted_at IS NULL
       OR emitted + skipped_expired + skipped_consumed + skipped_status + skipped_invalid > 0)
ORDER BY claimed_at DESC, id DESC
LIMIT $3)",
                                      in_seconds(since), in_seconds(until), limit));
}

std::optional<BatchRecord> find_first_claim(pqxx::transaction_base& transaction, const std::string& queue,
                                            Moment since, Moment claimed_since, std::int64_t token) {
  // The subquery is evaluated once, before the scan.
  const auto batches =
      read(db::Connection::execute(transaction,
                                   "SELECT " + columns("mailroom_batch_ids(ids, ids_mask) + skipped_ids") +
                                       R"(
FROM mailroom_batches
WHERE queue = $1 AND id >= (SELECT coalesce(mailroom_first_batch_since(to_timestamp($2::bigint)), 1))
  AND claimed_at >= to_timestamp($3::bigint) AND cursor >= $4
ORDER BY id
LIMIT 1)",
                                   queue, as_time(since), in_seconds(claimed_since), token));
  if (batches.empty()) return std::nullopt;
  return batches.front();
}

std::vector<IdReuse> find_id_reuses(pqxx::transaction_base& transaction) {
  std::vector<IdReuse> reuses;
  for (const auto& row :
       db::Connection::execute(transaction, "SELECT highest, " + db::microseconds_sql("reused_until") +
                                                " AS until_us FROM mailroom_id_reuses()"))
    reuses.push_back(
        {.highest = row.number("highest"), .until = row.moment<std::chrono::microseconds>("until_us")});
  return reuses;
}

void separate_reused_ids(const std::vector<TokenSpan>& spans, const std::vector<IdReuse>& reuses,
                         std::vector<BatchRecord>& batches) {
  for (auto& batch : batches) {
    const auto parts = divide(batch, spans, reuses);
    batch.tokens = ranges_of(parts.own);
    batch.of_others = ranges_of(parts.of_others);
    batch.unsure = ranges_of(parts.unsure);
  }
}

}  // namespace mailroom::queue
