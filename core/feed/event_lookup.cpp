#include "feed/event_lookup.hpp"

#include <algorithm>
#include <map>

#include "db/array_text.hpp"

namespace mailroom {
namespace {

constexpr const char* token_events_sql =
    "SELECT t.id, t.action, t.expires_at, t.account, a.email, a.login, "
    "mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, "
    "(SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)) "
    "FROM tokens t JOIN accounts a ON a.id = t.account WHERE t.id = ANY ($1::bigint[])";

constexpr const char* batch_events_sql =
    "SELECT id, job_type, ids::text, claimed_by, attempts, emitted, skipped_expired, skipped_consumed, "
    "skipped_status, skipped_invalid FROM mailroom_batches WHERE id = ANY ($1::bigint[])";

// Each range of ids is a condition of the index of tokens, as in the fetch of a batch's rows. A token that
// was created after the claim reuses the id of an earlier token.
constexpr const char* matches_sql =
    "SELECT b.id, t.id FROM mailroom_batches b, unnest(b.ids) u (g), LATERAL ("
    "SELECT id, action, account, created_at FROM tokens WHERE id >= lower(u.g) AND id < upper(u.g) "
    "ORDER BY id LIMIT 2000000000) t "
    "WHERE b.id = ANY ($1::bigint[]) AND t.created_at <= extract(epoch FROM b.claimed_at) "
    "AND ($2::token_action IS NULL OR t.action = $2) "
    "AND ($3::bigint[] IS NULL OR t.account = ANY ($3)) ORDER BY b.id, t.id";

constexpr const char* operation_events_sql =
    "SELECT o.id, o.actor, o.reason, o.queue, o.account, o.details::text, a.email, a.login "
    "FROM mailroom_operations o LEFT JOIN accounts a ON a.id = o.account WHERE o.id = ANY ($1::bigint[])";

/// Rows of one table as events without kind and time.
using EventsById = std::map<std::int64_t, Event>;

template <typename Field>
std::string text_of(const Field& field) {
  return field.is_null() ? std::string() : std::string(field.c_str());
}

std::vector<std::int64_t> ids_of(const std::vector<EventKey>& keys, bool (*belongs)(EventSource)) {
  std::vector<std::int64_t> ids;
  for (const auto& key : keys) {
    if (belongs(source_of(key.kind))) ids.push_back(key.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void find_tokens(Connection& connection, const std::vector<std::int64_t>& ids, EventsById& found) {
  if (ids.empty()) return;
  for (const auto& row : connection.run(token_events_sql, array_text(ids))) {
    Event event;
    event.token = row[0].as<std::int64_t>();
    event.action = row[1].c_str();
    event.expires_at = row[2].as<std::int64_t>();
    event.account = row[3].as<std::int64_t>();
    event.email = row[4].c_str();
    event.login = row[5].c_str();
    event.state = row[6].c_str();
    std::replace(event.state.begin(), event.state.end(), ' ', '-');
    event.whole_seconds = true;
    found.emplace(*event.token, std::move(event));
  }
}

void find_batches(Connection& connection, const std::vector<std::int64_t>& ids, EventsById& found) {
  if (ids.empty()) return;
  for (const auto& row : connection.run(batch_events_sql, array_text(ids))) {
    Event event;
    event.batch = row[0].as<std::int64_t>();
    event.queue = row[1].c_str();
    event.tokens = parse_id_ranges(row[2].c_str());
    event.actor = row[3].c_str();
    event.attempts = row[4].as<int>();
    event.emitted = row[5].as<int>();
    event.expired = row[6].as<int>();
    event.consumed = row[7].as<int>();
    event.wrong_status = row[8].as<int>();
    event.invalid = row[9].as<int>();
    found.emplace(*event.batch, std::move(event));
  }
}

/// Adds to each batch the ids of its tokens that match the filter.
void find_matches(Connection& connection, const std::vector<std::int64_t>& ids, const EventFilter& filter,
                  EventsById& batches) {
  if (ids.empty() || !filter.asks_for_tokens()) return;
  for (auto& [id, event] : batches)
    event.matches.emplace();
  const auto accounts = array_text(filter.accounts);
  const auto rows =
      connection.run(matches_sql, array_text(ids), filter.action ? filter.action->c_str() : nullptr,
                     filter.accounts.empty() ? nullptr : accounts.c_str());
  for (const auto& row : rows) {
    const auto batch = batches.find(row[0].as<std::int64_t>());
    if (batch != batches.end()) batch->second.matches->push_back(row[1].as<std::int64_t>());
  }
}

void find_operations(Connection& connection, const std::vector<std::int64_t>& ids, EventsById& found) {
  if (ids.empty()) return;
  for (const auto& row : connection.run(operation_events_sql, array_text(ids))) {
    Event event;
    event.actor = row[1].c_str();
    event.reason = text_of(row[2]);
    event.queue = text_of(row[3]);
    if (!row[4].is_null()) event.account = row[4].as<std::int64_t>();
    event.details = row[5].c_str();
    event.email = text_of(row[6]);
    event.login = text_of(row[7]);
    found.emplace(row[0].as<std::int64_t>(), std::move(event));
  }
}

Event complete(Event event, const EventKey& key) {
  event.kind = key.kind;
  event.time_us = key.order_us;
  if (key.kind == EventKind::created) event.time_us -= creation_order(0);
  if (key.kind == EventKind::consumed) event.time_us -= consumption_order(0);
  // The state of a created token is the one just read; the state of any other event is its kind.
  if (key.kind != EventKind::created) event.state = kind_text(key.kind);
  return event;
}

}  // namespace

std::vector<Event> look_up(Connection& connection, const std::vector<EventKey>& keys,
                           const EventFilter& filter) {
  const auto tokens = ids_of(keys, [](EventSource source) {
    return source == EventSource::tokens || source == EventSource::consumption;
  });
  const auto batches = ids_of(keys, [](EventSource source) { return source == EventSource::batches; });
  const auto operations = ids_of(keys, [](EventSource source) { return source == EventSource::operations; });
  EventsById found_tokens;
  EventsById found_batches;
  EventsById found_operations;
  find_tokens(connection, tokens, found_tokens);
  find_batches(connection, batches, found_batches);
  find_matches(connection, batches, filter, found_batches);
  find_operations(connection, operations, found_operations);

  std::vector<Event> events;
  for (const auto& key : keys) {
    const auto source = source_of(key.kind);
    const auto& found = source == EventSource::operations ? found_operations
                        : source == EventSource::batches  ? found_batches
                                                          : found_tokens;
    const auto row = found.find(key.id);
    if (row == found.end()) continue;
    auto event = complete(row->second, key);
    if (filter.wants(event)) events.push_back(std::move(event));
  }
  return events;
}

}  // namespace mailroom
