// Reads the rows of some keys and makes them events, without those that the filter excludes.

#include <algorithm>
#include <map>

#include "db/values.hpp"
#include "feed/past_events.hpp"

namespace mailroom::feed {
namespace {

// Each range of ids is a condition of the index of tokens, as in the fetch of a batch's rows. A token that
// was created after the claim reuses the id of an earlier token.
constexpr const char* matches_sql =
    "SELECT b.id AS batch, t.id AS token FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) u (g), LATERAL ("
    "SELECT id, action, account, created_at FROM tokens WHERE id >= lower(u.g) AND id < upper(u.g) "
    "ORDER BY id LIMIT 2000000000) t "
    "WHERE b.id = ANY ($1::bigint[]) AND t.created_at <= extract(epoch FROM b.claimed_at) "
    "AND ($2::token_action IS NULL OR t.action = $2) "
    "AND ($3::bigint[] IS NULL OR t.account = ANY ($3)) ORDER BY b.id, t.id";

/// Events without kind and time, by source and id.
using EventRows = std::map<std::pair<EventSource, std::int64_t>, Event>;

std::vector<std::int64_t> ids_of(const std::vector<EventKey>& keys, EventSource source) {
  std::vector<std::int64_t> ids;
  for (const auto& key : keys) {
    if (source_of(key.kind) == source) ids.push_back(key.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

/// Adds to each batch the ids of its tokens that match the filter.
void find_matches(pqxx::transaction_base& transaction, const std::vector<std::int64_t>& ids,
                  const EventFilter& filter, EventRows& rows) {
  if (ids.empty() || !filter.asks_for_tokens()) return;
  for (auto& [key, event] : rows) {
    if (key.first == EventSource::batches) event.matches.emplace();
  }
  const auto accounts = db::array_text(filter.accounts);
  const auto found = db::Connection::execute(transaction, matches_sql, db::array_text(ids), filter.action,
                                             filter.accounts.empty() ? nullptr : accounts.c_str());
  for (const auto& row : found) {
    const auto batch = rows.find({EventSource::batches, row.number("batch")});
    if (batch != rows.end()) batch->second.matches->push_back(row.number("token"));
  }
}

EventRows read_rows(pqxx::transaction_base& transaction, const std::vector<EventKey>& keys,
                    const EventFilter& filter) {
  EventRows rows;
  const auto read = [&](EventSource source, const auto& find) {
    const auto ids = ids_of(keys, source);
    if (ids.empty()) return ids;
    for (auto& row : find(transaction, ids))
      rows[{source, row.id}].record = std::move(row);
    return ids;
  };
  read(EventSource::tokens, find_tokens);
  read(EventSource::operations, find_operations);
  const auto batches = read(EventSource::batches, [](auto& within, const auto& ids) {
    return queue::find_batches(within, ids);  // overloaded
  });
  find_matches(transaction, batches, filter, rows);
  return rows;
}

/// The outcomes of deliveries by time and token.
using DeliveryEvents = std::multimap<std::pair<Moment, std::int64_t>, DeliveryAttempt>;

DeliveryEvents read_deliveries(pqxx::transaction_base& transaction, const std::vector<EventKey>& keys) {
  DeliveryEvents events;
  const auto ids = ids_of(keys, EventSource::deliveries);
  if (ids.empty()) return events;
  std::map<std::int64_t, StoredToken> tokens;
  for (auto& token : find_tokens(transaction, ids))
    tokens.emplace(token.id, std::move(token));
  for (auto& delivery : find_deliveries(transaction, selection::to_id_ranges(ids))) {
    const auto token = tokens.find(delivery.token);
    auto& attempts = delivery.attempts;
    attempts.insert(attempts.end(), delivery.reports.begin(), delivery.reports.end());
    for (auto& attempt : attempts) {
      if (token != tokens.end() && can_be_of(token->second, attempt.at)) attempt.token = token->second;
      events.emplace(std::pair(attempt.at, delivery.token), std::move(attempt));
    }
  }
  return events;
}

/// The events of `keys`, which are in order. Keys that are equal are of several queues.
std::vector<Event> events_of(const std::vector<EventKey>& keys, const EventRows& rows,
                             DeliveryEvents deliveries) {
  std::vector<Event> events;
  for (const auto& key : keys) {
    const auto source = source_of(key.kind);
    if (source == EventSource::deliveries) {
      if (auto delivery = deliveries.extract(std::pair(key.order, key.id)))
        events.push_back({key.kind, key.order, std::move(delivery.mapped())});
      continue;
    }
    const auto row = rows.find({source, key.id});
    if (row == rows.end()) continue;
    events.push_back(row->second);
    events.back().kind = key.kind;
    events.back().at =
        key.order - (source == EventSource::tokens ? order_shift(key.kind) : Moment::duration());
  }
  return events;
}

}  // namespace

std::vector<Event> look_up(db::Connection& connection, const std::vector<EventKey>& keys,
                           const EventFilter& filter) {
  auto events = connection.alone([&](pqxx::transaction_base& transaction) {
    return events_of(keys, read_rows(transaction, keys, filter), read_deliveries(transaction, keys));
  });
  events.erase(
      std::remove_if(events.begin(), events.end(), [&](const auto& event) { return !filter.wants(event); }),
      events.end());
  return events;
}

}  // namespace mailroom::feed
