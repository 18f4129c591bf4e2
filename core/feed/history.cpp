#include "feed/history.hpp"

#include <algorithm>

#include "feed/row_stream.hpp"

namespace mailroom {
namespace {

constexpr std::int64_t microseconds = 1'000'000;

// Parameters of each query: the second from which on ($1), the smallest and the greatest id ($2, $3), the
// filter's action, accounts and states ($4, $5, $6), and how many ($7). One that is null asks for nothing,
// and its condition vanishes when the statement is planned.
constexpr const char* token_conditions =
    "t.id >= $2::bigint AND t.id <= $3::bigint AND ($4::token_action IS NULL OR t.action = $4) "
    "AND ($5::bigint[] IS NULL OR t.account = ANY ($5)) ";

const std::string& tokens_sql() {
  static const auto sql =
      std::string("SELECT t.id, t.created_at FROM tokens t WHERE t.created_at >= $1::bigint AND ") +
      token_conditions +
      "AND ($6::text[] IS NULL OR 'created' = ANY ($6) OR EXISTS (SELECT FROM accounts a WHERE a.id = "
      "t.account "
      "AND replace(mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, "
      "floor(extract(epoch FROM clock_timestamp()))::bigint), ' ', '-') = ANY ($6))) ";
  return sql;
}

const std::string& consumption_sql() {
  static const auto sql =
      std::string("SELECT t.id, t.consumed_at FROM tokens t WHERE t.consumed_at >= $1::bigint AND ") +
      token_conditions + "AND ($6::text[] IS NULL OR 'consumed' = ANY ($6)) ";
  return sql;
}

// A batch may have been claimed long before what is told of it; a small index knows when it was.
const std::string& batches_sql() {
  static const auto sql =
      "WITH b AS NOT MATERIALIZED (SELECT *, skipped_expired > 0 OR skipped_consumed > 0 OR skipped_status > "
      "0 "
      "OR skipped_invalid > 0 AS has_skipped FROM mailroom_batches) SELECT " +
      batch_row_columns +
      " FROM b WHERE b.claimed_at >= to_timestamp($1::bigint) - interval '1 day' "
      "AND b.id >= $2::bigint AND b.id <= $3::bigint "
      "AND ((b.emitted_at IS NOT NULL AND (b.emitted > 0 OR b.has_skipped OR NOT isempty(b.ids))) "
      "OR b.set_aside_at IS NOT NULL OR b.attempts > 1) "
      "AND ($6::text[] IS NULL OR (b.attempts > 1 AND 'taken-over' = ANY ($6)) "
      "OR (b.set_aside_at IS NOT NULL AND 'set-aside' = ANY ($6)) "
      "OR (b.emitted_at IS NOT NULL AND CASE WHEN b.emitted = 0 AND b.has_skipped THEN 'passed-over' "
      "ELSE 'emitted' END = ANY ($6))) "
      "AND ($5::bigint[] IS NULL OR b.ids && (SELECT coalesce(range_agg(int8range(t.id, t.id, '[]')), '{}') "
      "FROM tokens t WHERE t.account = ANY ($5))) "
      "AND (($4::token_action IS NULL AND $5::bigint[] IS NULL) OR EXISTS (SELECT FROM unnest(b.ids) u (g), "
      "LATERAL (SELECT id, action, account, created_at FROM tokens WHERE id >= lower(u.g) AND id < "
      "upper(u.g) "
      "ORDER BY id LIMIT 2000000000) t "
      "WHERE ($4::token_action IS NULL OR t.action = $4) AND ($5::bigint[] IS NULL OR t.account = ANY ($5)) "
      "AND t.created_at <= extract(epoch FROM b.claimed_at))) ";
  return sql;
}

// The states are kinds here.
constexpr const char* operations_sql =
    "SELECT o.id, (extract(epoch FROM o.at) * 1000000)::bigint, o.kind FROM mailroom_operations o "
    "WHERE o.at >= to_timestamp($1::bigint) AND o.id >= $2::bigint AND o.id <= $3::bigint "
    "AND $4::token_action IS NULL AND ($5::bigint[] IS NULL OR o.account = ANY ($5)) "
    "AND ($6::text[] IS NULL OR o.kind = ANY ($6)) ";

/// Null for an empty list.
template <typename T>
std::optional<std::string> array_or_null(const std::vector<T>& values) {
  if (values.empty()) return std::nullopt;
  return array_text(values);
}

std::vector<std::string> kinds_of(const std::vector<std::string>& states) {
  std::vector<std::string> kinds;
  for (const auto* kind : {"suspend", "restore", "rewind", "replay", "prune"}) {
    const auto word = word_text(*word_of_operation(kind));
    if (std::find(states.begin(), states.end(), word) != states.end()) kinds.emplace_back(kind);
  }
  return kinds;
}

/// Reads the four kinds of event into one list.
class HistoryReader {
 public:
  HistoryReader(const FeedSnapshot& snapshot, const HistoryRequest& request, const EventFilter& filter)
      : snapshot_(snapshot),
        filter_(filter),
        from_token_(request.from_token.value_or(0)),
        since_(request.since.value_or(0)),
        accounts_(array_or_null(filter.accounts)),
        states_(array_or_null(filter.states)),
        kinds_(array_or_null(kinds_of(filter.states))) {
    if (request.from_token) since_ = creation_of_first_token();
    // With a start, the last ones are cut out afterwards: to look for so many of a kind from the end on might
    // lead far beyond it.
    if (!request.since && !request.from_token) limit_ = request.last;
  }

  std::vector<EventKey> read() {
    if (filter_.may_want(EventWord::created)) read_tokens();
    if (filter_.may_want(EventWord::consumed)) read_consumption();
    read_batches();
    read_operations();
    std::sort(events_.begin(), events_.end());
    return std::move(events_);
  }

 private:
  void read_tokens() {
    stream(tokens_sql(), "t.id", Followed::tokens, states_, [&](const auto& row) {
      add(creation_order(row[1].template as<std::int64_t>()), row, EventWord::created);
    });
  }

  void read_consumption() {
    stream(consumption_sql(), "t.consumed_at", Followed::tokens, states_, [&](const auto& row) {
      add(consumption_order(row[1].template as<std::int64_t>()), row, EventWord::consumed);
    });
  }

  void read_batches() {
    stream(batches_sql(), "b.id", Followed::batches, states_, [&](const auto& row) {
      for (const auto& event : batch_events(read_batch_row(row), 1)) {
        if (filter_.may_want(event.word) && event.order_us >= since_ * microseconds) events_.push_back(event);
      }
    });
  }

  void read_operations() {
    if (!filter_.states.empty() && !kinds_) return;
    stream(operations_sql, "o.id", Followed::operations, kinds_, [&](const auto& row) {
      const auto word = word_of_operation(row[2].c_str());
      if (word && filter_.may_want(*word)) add(row[1].template as<std::int64_t>(), row, *word);
    });
  }

  template <typename Row>
  void add(std::int64_t order_us, const Row& row, EventWord word) {
    events_.push_back({order_us, row[0].template as<std::int64_t>(), word});
  }

  template <typename Each>
  void stream(const std::string& sql, const std::string& order, Followed followed,
              const std::optional<std::string>& states, const Each& each) {
    const auto newest_first = limit_ ? "ORDER BY " + order + " DESC " : std::string();
    const auto from = followed == Followed::tokens ? from_token_ : 0;
    stream_rows(snapshot_.transaction(), sql + newest_first + "LIMIT $7::bigint", each, since_, from,
                snapshot_.tops().at(index_of(followed)), filter_.action, accounts_, states, limit_);
  }

  /// The second before the first of the tokens asked for was made; if there is none yet, one that is to come.
  std::int64_t creation_of_first_token() const {
    const auto rows = Connection::execute(
        snapshot_.transaction(),
        "SELECT coalesce((SELECT created_at - 1 FROM tokens WHERE id >= $1 ORDER BY id LIMIT 1), "
        "floor(extract(epoch FROM clock_timestamp()))::bigint + 1)",
        from_token_);
    return rows[0][0].as<std::int64_t>();
  }

  const FeedSnapshot& snapshot_;
  const EventFilter& filter_;
  std::int64_t from_token_;
  std::int64_t since_;
  std::optional<std::int64_t> limit_;
  std::optional<std::string> accounts_;
  std::optional<std::string> states_;
  std::optional<std::string> kinds_;
  std::vector<EventKey> events_;
};

}  // namespace

std::vector<EventKey> read_history(const FeedSnapshot& snapshot, const HistoryRequest& request,
                                   const EventFilter& filter) {
  if (request.last == 0) return {};
  auto events = HistoryReader(snapshot, request, filter).read();
  if (request.last && static_cast<std::int64_t>(events.size()) > *request.last) {
    events.erase(events.begin(), events.end() - *request.last);
  }
  return events;
}

}  // namespace mailroom
