// Filters events: first by kind, which saves reading rows, and reads the keys of those that may match from
// the tables that record them.

#include "feed/past_events.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "db/values.hpp"
#include "fate/outcome.hpp"

namespace mailroom::feed {
namespace {

constexpr int rows_per_fetch = 20'000;

// Each query returns an id, a time `at` (that of a token in seconds, any other in microseconds) and the kind
// of the event. Parameters: the second to start at ($1), the smallest token id ($2), the filter's action,
// accounts and states ($3, $4, $5), the limit ($6), and the filter's selection ($7). The planner removes the
// condition of a parameter that is null.
constexpr const char* tokens_sql = R"(
SELECT t.id, t.created_at AS at, 'created' AS kind FROM tokens t
WHERE t.created_at >= $1::bigint AND t.id >= $2::bigint
  AND ($3::token_action IS NULL OR t.action = $3) AND ($4::bigint[] IS NULL OR t.account = ANY ($4))
  AND ($5::text[] IS NULL OR 'created' = ANY ($5) OR EXISTS (
    SELECT FROM (SELECT) one LEFT JOIN accounts a ON a.id = t.account
    WHERE replace(mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                                       floor(extract(epoch FROM clock_timestamp()))::bigint), ' ', '-') = ANY ($5)))
)";

constexpr const char* consumption_sql = R"(
SELECT t.id, t.consumed_at AS at, 'consumed' AS kind FROM tokens t
WHERE t.consumed_at >= $1::bigint AND t.id >= $2::bigint
  AND ($3::token_action IS NULL OR t.action = $3) AND ($4::bigint[] IS NULL OR t.account = ANY ($4))
  AND ($5::text[] IS NULL OR 'consumed' = ANY ($5))
)";

// A token that was emitted before it expired has another outcome than that.
constexpr const char* unsent_sql = R"(
  AND ('created' = ANY ($5) OR t.consumed_at IS NOT NULL
    OR t.expires_at > floor(extract(epoch FROM clock_timestamp()))::bigint
    OR NOT t.id <@ (SELECT coalesce(range_agg(g), '{}')
                    FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g
                    WHERE b.emitted_at IS NOT NULL AND b.claimed_at >= to_timestamp($1::bigint) - interval '1 hour'))
)";

// A batch is claimed at most a day before its events; claimed_at has a small index. A batch that leased
// nothing and recorded nothing is not an event. A token that was created after the claim reuses the id of an
// earlier token.
const std::string batches_sql = "SELECT b.id, " + db::microseconds_sql("e.at") + R"( AS at, e.kind
FROM mailroom_batches b,
  LATERAL (SELECT b.skipped_expired + b.skipped_consumed + b.skipped_status + b.skipped_invalid > 0) s (skipped),
  LATERAL (VALUES
    (CASE WHEN b.attempts > 1 THEN b.claimed_at END, 'taken-over'),
    (b.dead_at, 'dead'),
    (CASE WHEN b.emitted > 0 OR s.skipped OR NOT isempty(b.ids) THEN b.emitted_at END,
     CASE WHEN b.emitted = 0 AND s.skipped THEN 'skipped' ELSE 'emitted' END)) e (at, kind)
WHERE b.claimed_at >= to_timestamp($1::bigint) - interval '1 day' AND e.at >= to_timestamp($1::bigint)
  AND $2::bigint IS NOT NULL AND ($5::text[] IS NULL OR e.kind = ANY ($5))
  AND ($4::bigint[] IS NULL OR b.ids && (
    SELECT coalesce(range_agg(int8range(t.id, t.id, '[]')), '{}') FROM tokens t WHERE t.account = ANY ($4)))
  AND (($3::token_action IS NULL AND $4::bigint[] IS NULL) OR EXISTS (
    SELECT FROM unnest(mailroom_batch_ids(b.ids, b.ids_mask)) u (g),
      LATERAL (SELECT action, account, created_at FROM tokens
               WHERE id >= lower(u.g) AND id < upper(u.g) ORDER BY id LIMIT 2000000000) t
    WHERE ($3::token_action IS NULL OR t.action = $3) AND ($4::bigint[] IS NULL OR t.account = ANY ($4))
      AND t.created_at <= extract(epoch FROM b.claimed_at)))
)";

// `deliveries` is a table of rows of mailroom_deliveries. Each row has a present outcome, earlier ones, and
// the time when the delivery was last accepted. An outcome before the token was created is of an earlier
// token with its id.
std::string deliveries_sql_of(const std::string& deliveries) {
  return "SELECT d.token AS id, " + db::microseconds_sql("e.at") + " AS at, 'delivery' AS kind FROM " +
         deliveries +
         R"(, LATERAL (
  SELECT d.last_at, d.state
  UNION SELECT (a->>'at')::timestamptz, a->>'state' FROM jsonb_array_elements(d.earlier_attempts) a
  UNION SELECT d.accepted_at, 'accepted') e (at, state)
WHERE d.last_at >= to_timestamp($1::bigint) AND e.at >= to_timestamp($1::bigint) AND d.token >= $2::bigint
  AND ($5::text[] IS NULL OR e.state = ANY ($5) OR 'delivery' = ANY ($5))
  AND (($3::token_action IS NULL AND $4::bigint[] IS NULL) OR EXISTS (
    SELECT FROM tokens t WHERE t.id = d.token AND ($3::token_action IS NULL OR t.action = $3)
      AND ($4::bigint[] IS NULL OR t.account = ANY ($4)) AND t.created_at <= extract(epoch FROM e.at)))
)";
}
const std::string deliveries_sql = deliveries_sql_of("mailroom_deliveries d");
const std::string deliveries_of_accounts_sql = deliveries_sql_of(R"(
(SELECT m.* FROM tokens t CROSS JOIN jobs j, LATERAL (
   SELECT * FROM mailroom_deliveries WHERE queue = j.job_type AND token = t.id LIMIT 1) m
 WHERE t.account = ANY ($4::bigint[])) d)");

// A report is shown as a delivery, with what it says as its outcome.
const std::string reports_sql = "SELECT b.token AS id, " + db::microseconds_sql("b.at") +
                                R"( AS at, 'delivery' AS kind FROM mailroom_bounces b,
  LATERAL (SELECT coalesce(mailroom_reported_outcome(b.kind), b.kind) AS state) e
WHERE b.token IS NOT NULL AND b.at >= to_timestamp($1::bigint) AND b.token >= $2::bigint
  AND ($5::text[] IS NULL OR e.state = ANY ($5) OR 'delivery' = ANY ($5))
  AND (($3::token_action IS NULL AND $4::bigint[] IS NULL) OR EXISTS (
    SELECT FROM tokens t WHERE t.id = b.token AND ($3::token_action IS NULL OR t.action = $3)
      AND ($4::bigint[] IS NULL OR t.account = ANY ($4)) AND t.created_at <= extract(epoch FROM b.at)))
)";

// The code of one of the outcomes of a delivery.
constexpr const char* codes_sql = R"(
  AND (CASE WHEN e.at = d.last_at THEN d.code ELSE (
    SELECT (a->>'code')::integer FROM jsonb_array_elements(d.earlier_attempts) a
    WHERE (a->>'at')::timestamptz = e.at LIMIT 1) END) <@ ($7::jsonb->>'codes')::int4multirange
)";

const std::string operations_sql = "SELECT o.id, " + db::microseconds_sql("o.at") + R"( AS at, o.kind
FROM mailroom_operations o
WHERE o.at >= to_timestamp($1::bigint) AND $2::bigint IS NOT NULL
  AND $3::token_action IS NULL AND ($4::bigint[] IS NULL OR o.account = ANY ($4))
  AND ($5::text[] IS NULL OR o.kind = ANY ($5))
)";

/// Null for an empty list.
template <typename T>
std::optional<std::string> array_or_null(const std::vector<T>& values) {
  if (values.empty()) return std::nullopt;
  return db::array_text(values);
}

/// The states of a filter, and the operations with these states; null for an empty list.
std::optional<std::string> states_of(const EventFilter& filter) {
  auto states = filter.states;
  for (const auto& state : filter.states) {
    const auto operation = operation_text(state);
    if (!operation.empty()) states.emplace_back(operation);
  }
  return array_or_null(states);
}

/// The keys of the events of one query, and what the query shares with others.
class KeyReader {
 public:
  KeyReader(pqxx::work& transaction, const EventFilter& filter, std::int64_t from_token,
            std::optional<std::int64_t> limit)
      : transaction_(transaction),
        filter_(filter),
        accounts_(array_or_null(filter.accounts)),
        states_(states_of(filter)),
        selection_(filter.selection.parameter()),
        from_token_(from_token),
        limit_(limit) {}

  /// Adds the events of `query` since `since`; with a limit, the last in `order`. Returns how many rows it
  /// has read.
  std::int64_t read(const std::string& query, const std::string& order, Moment since);
  /// The same for deliveries. An index shows where recent outcomes are, but not their order, so with a limit
  /// it looks for enough of them within an hour, then a day.
  void read_deliveries(std::optional<Moment> since);

  std::vector<EventKey> events{};

 private:
  pqxx::work& transaction_;
  const EventFilter& filter_;
  std::optional<std::string> accounts_;
  std::optional<std::string> states_;
  std::string selection_;
  std::int64_t from_token_;
  std::optional<std::int64_t> limit_;
};

std::int64_t KeyReader::read(const std::string& query, const std::string& order, Moment since) {
  static const auto fetch = fmt::format("FETCH {} FROM events", rows_per_fetch);
  const auto newest_first = limit_ ? "ORDER BY " + order + " DESC " : std::string();
  db::Connection::execute(transaction_,
                          "DECLARE events NO SCROLL CURSOR FOR " + query + " AND $7::jsonb IS NOT NULL " +
                              newest_first + "LIMIT $6::bigint",
                          in_seconds(since), from_token_, filter_.action, accounts_, states_, limit_,
                          selection_);
  std::int64_t total = 0;
  for (int count = rows_per_fetch; count == rows_per_fetch; total += count) {
    const auto rows = db::Connection::execute(transaction_, fetch);
    for (const auto& row : rows) {
      const auto kind = find_kind(row.text("kind"));
      if (!filter_.may_want(kind)) continue;
      const auto at = source_of(kind) == EventSource::tokens
                          ? row.moment<std::chrono::seconds>("at") + order_shift(kind)
                          : row.moment<std::chrono::microseconds>("at");
      events.push_back({at, kind, row.number("id")});
    }
    count = static_cast<int>(rows.size());
  }
  db::Connection::execute(transaction_, "CLOSE events");
  return total;
}

void KeyReader::read_deliveries(std::optional<Moment> since) {
  auto query = accounts_ ? deliveries_of_accounts_sql : deliveries_sql;
  const auto& selection = filter_.selection;
  if (!selection.codes.empty()) query += codes_sql;
  const auto of_batches = selection.batch_condition("$7");
  if (!of_batches.empty())
    query += " AND d.batch = ANY (ARRAY(SELECT b.id FROM mailroom_batches b WHERE true" + of_batches + "))";
  if (limit_ && !accounts_) {
    const auto now = db::Connection::execute(transaction_, "SELECT floor(extract(epoch FROM now()))::bigint")
                         .moment<std::chrono::seconds>();
    for (const auto span : {std::chrono::hours(1), std::chrono::hours(24)}) {
      const auto before = events.size();
      if (read(query, "e.at", now - span) >= *limit_) return;
      events.resize(before);
    }
  }
  read(query, "e.at", since.value_or(Moment()));
}

/// Returns the second before the first token from `token` on was created; without one, the next second.
Moment creation_of(pqxx::work& transaction, std::int64_t token) {
  return db::Connection::execute(transaction, R"(
SELECT coalesce((SELECT created_at - 1 FROM tokens WHERE id >= $1 ORDER BY id LIMIT 1),
                floor(extract(epoch FROM clock_timestamp()))::bigint + 1))",
                                 token)
      .moment<std::chrono::seconds>();
}

}  // namespace

EventSource source_of(EventKind kind) {
  if (kind == EventKind::created || kind == EventKind::consumed) return EventSource::tokens;
  if (kind == EventKind::delivery) return EventSource::deliveries;
  return kind < EventKind::created ? EventSource::operations : EventSource::batches;
}

bool EventFilter::wants_state(std::string_view state) const {
  return states.empty() || std::find(states.begin(), states.end(), state) != states.end();
}

bool EventFilter::may_want(EventKind kind) const {
  const bool is_token_or_operation =
      source_of(kind) == EventSource::tokens || source_of(kind) == EventSource::operations;
  if (is_of_outcomes() && is_token_or_operation) return false;
  if (!selection.codes.empty() && kind != EventKind::delivery) return false;
  // The state of a created token is not known yet.
  if (kind == EventKind::created) {
    return wants_state("created") || wants_state("due") || wants_state("expired") ||
           wants_state("consumed") || wants_state("wrong-status");
  }
  if (kind == EventKind::delivery) {
    const auto wants = [&](fate::Outcome outcome) { return wants_state(fate::outcome_name(outcome)); };
    return wants_state("delivery") || std::ranges::any_of(fate::delivery_outcomes, wants) ||
           std::ranges::any_of(fate::reported_outcomes, wants);
  }
  if (!wants_state(kind_text(kind))) return false;
  if (source_of(kind) == EventSource::batches) return !(kind == EventKind::skipped && asks_for_tokens());
  if (source_of(kind) == EventSource::tokens) return true;
  const bool is_of_account = kind == EventKind::suspended || kind == EventKind::restored;
  return !action && (accounts.empty() || is_of_account);
}

bool EventFilter::wants(const Event& event) const {
  const bool has_own_state = event.kind == EventKind::created || event.kind == EventKind::delivery;
  const bool is_wanted = wants_state(event.state()) || (has_own_state && wants_state(kind_text(event.kind)));
  if (!may_want(event.kind) || !is_wanted) return false;
  if (event.batch() != nullptr) return !asks_for_tokens() || (event.matches && !event.matches->empty());
  if (const auto* token = event.subject_token()) {
    if (token->id < from_token || (action && token->action != *action)) return false;
  }
  const auto* account = event.account();
  return accounts.empty() ||
         (account != nullptr && std::find(accounts.begin(), accounts.end(), account->id) != accounts.end());
}

std::vector<EventKey> read_history(pqxx::work& transaction, const HistoryRequest& request,
                                   const EventFilter& filter) {
  if (request.last == 0) return {};
  const auto since = request.from_token ? creation_of(transaction, *request.from_token) : request.since;
  // With a start, the limit applies at the end: an index scan from the end might read rows far before it.
  const auto limit = since ? std::nullopt : request.last;
  KeyReader reader(transaction, filter, request.from_token.value_or(0), limit);
  const auto from = since.value_or(Moment());
  const bool wants_expired = !filter.states.empty() && filter.wants_state("expired");
  if (filter.may_want(EventKind::created))
    reader.read(wants_expired ? std::string(tokens_sql) + unsent_sql : tokens_sql, "t.id", from);
  if (filter.may_want(EventKind::consumed)) reader.read(consumption_sql, "t.consumed_at", from);
  if (filter.may_want(EventKind::delivery)) {
    reader.read_deliveries(since);
    if (filter.selection.codes.empty() && filter.selection.batch_condition("$7").empty())
      reader.read(reports_sql, "b.at", from);
  }
  if (filter.selection.codes.empty())
    reader.read(batches_sql + filter.selection.batch_condition("$7"), "b.id", from);
  if (!filter.is_of_outcomes()) reader.read(operations_sql, "o.id", from);
  auto events = std::move(reader.events);
  if (request.until) {
    std::erase_if(events, [&](const auto& event) { return event.order >= *request.until; });
  }
  std::sort(events.begin(), events.end());
  if (request.last && static_cast<std::int64_t>(events.size()) > *request.last)
    events.erase(events.begin(), events.end() - *request.last);
  return events;
}

}  // namespace mailroom::feed
