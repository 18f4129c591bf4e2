// The state of a message takes a function call for each; records in bulk say which messages can have it.

#include "messages/message_search.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>

#include "base/json.hpp"
#include "base/text.hpp"
#include "db/errors.hpp"
#include "db/values.hpp"
#include "mail/address.hpp"

namespace mailroom::messages {
namespace {

/// The queues, with the ids of tokens that their batches hold: read once for all messages.
constexpr const char* queues_sql = R"(
WITH q AS MATERIALIZED (
  SELECT j.job_type AS name, mailroom_queue_actions(j.job_type) AS actions, s.cursor,
    (SELECT coalesce(range_agg(g), '{}') FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g
     WHERE b.queue = j.job_type AND b.id >= s.open_from AND b.emitted_at IS NULL AND b.dead_at IS NULL) AS open,
    (SELECT coalesce(range_agg(g), '{}') FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g
     WHERE b.queue = j.job_type AND b.emitted_at IS NOT NULL) AS closed
  FROM jobs j, LATERAL (
    SELECT n.cursor, n.open_from FROM (
      (SELECT b.cursor, b.open_from FROM mailroom_batches b WHERE b.queue = j.job_type ORDER BY b.id DESC LIMIT 1)
      UNION ALL SELECT coalesce(j.last_seq, 0), 1) n LIMIT 1) s))";

// $1: the selectors as JSON, without a key for one that is not given.
constexpr const char* selected_sql = R"(
FROM mailroom_messages m LEFT JOIN accounts a ON a.id = m.account
WHERE (NOT $1::jsonb ? 'references' OR m.reference = ANY (ARRAY(SELECT jsonb_array_elements_text($1::jsonb->'references'))))
  AND (NOT $1::jsonb ? 'actions' OR m.action = ANY (ARRAY(SELECT jsonb_array_elements_text($1::jsonb->'actions'))))
  AND (NOT $1::jsonb ? 'owners' OR m.owner = ANY (ARRAY(
    SELECT o.owner FROM mailroom_owners o
    WHERE mailroom_owner_name(o.owner) = ANY (ARRAY(SELECT jsonb_array_elements_text($1::jsonb->'owners')))
    UNION ALL SELECT r.oid::bigint FROM pg_roles r
    WHERE r.rolname = ANY (ARRAY(SELECT jsonb_array_elements_text($1::jsonb->'owners')))
      AND NOT EXISTS (SELECT FROM mailroom_owners o WHERE o.owner = r.oid::bigint))))
  AND (NOT $1::jsonb ? 'since' OR m.created_at >= to_timestamp(($1::jsonb->>'since')::bigint))
  AND (NOT $1::jsonb ? 'until' OR m.created_at < to_timestamp(($1::jsonb->>'until')::bigint))
  AND (NOT $1::jsonb ? 'recipients' OR EXISTS (
    SELECT FROM unnest(coalesce(m.recipients || m.cc || m.bcc, ARRAY[a.email])) r (mailbox)
    WHERE mailroom_canonical(mailroom_address(r.mailbox))
      = ANY (ARRAY(SELECT mailroom_canonical(mailroom_address(jsonb_array_elements_text($1::jsonb->'recipients'))))))))";

constexpr const char* is_scheduled_sql =
    "EXISTS (SELECT FROM mailroom_schedule w WHERE w.send_after = m.send_after AND w.message = m.id)";

std::string any_delivery(const std::string& condition) {
  return "EXISTS (SELECT FROM tokens t JOIN mailroom_deliveries d ON d.token = t.id WHERE t.message = m.id AND " +
         condition + ")";
}

std::string any_token(const std::string& condition) {
  return "EXISTS (SELECT FROM tokens t WHERE t.message = m.id AND " + condition + ")";
}

/// What the records of a message show if mailroom_states_of() may return a state for it: never less.
const std::map<std::string, std::string, std::less<>>& state_conditions() {
  static const auto conditions = [] {
    const std::string live = "t.consumed_at IS NULL AND t.expires_at > extract(epoch FROM clock_timestamp())";
    const std::string undelivered =
        "NOT EXISTS (SELECT FROM mailroom_deliveries d WHERE d.queue = q.name AND d.token = t.id)";
    const std::string reported =
        "EXISTS (SELECT FROM tokens t JOIN mailroom_bounces x ON x.token = t.id WHERE t.message = m.id)";
    const std::string tokenless = fmt::format(
        "(NOT {} AND (SELECT count(*) FROM tokens t WHERE t.message = m.id) "
        "< cardinality(mailroom_places(m.recipients || m.cc || m.bcc)))",
        is_scheduled_sql);
    return std::map<std::string, std::string, std::less<>>{
        {"accepted", any_delivery("d.accepted_at IS NOT NULL")},
        {"delivered", reported},
        {"bounced", reported},
        {"complained", reported},
        {"deferred", any_delivery("d.state = 'deferred'")},
        {"rejected", any_delivery("d.state = 'rejected'")},
        {"unknown", any_delivery("d.state = 'unknown'")},
        {"expired", fmt::format("({} OR {})", any_delivery("d.state = 'expired'"),
                                any_token("t.consumed_at IS NULL AND t.expires_at <= extract(epoch FROM "
                                          "clock_timestamp())"))},
        {"cancelled",
         fmt::format("(m.cancelled_at IS NOT NULL OR {})", any_delivery("d.state = 'cancelled'"))},
        {"replaced", "m.replaced_at IS NOT NULL"},
        {"scheduled", is_scheduled_sql},
        {"skipped", any_token("t.consumed_at IS NOT NULL")},
        {"leased", any_token("EXISTS (SELECT FROM q WHERE t.id <@ q.open)")},
        {"emitted", any_token("EXISTS (SELECT FROM q WHERE t.id <= q.cursor AND t.id <@ q.closed AND " +
                              undelivered + ")")},
        {"waiting",
         any_token(
             live +
             " AND EXISTS (SELECT FROM q WHERE mailroom_takes(q.actions, t.action) AND NOT t.id <@ q.open "
             "AND (t.id > q.cursor OR NOT t.id <@ q.closed) AND " +
             undelivered + ")")},
        {"not_taken",
         any_token(live + " AND NOT EXISTS (SELECT FROM q WHERE mailroom_takes(q.actions, t.action))")},
        {"no_token", tokenless},
        {"not_recorded", tokenless}};
  }();
  return conditions;
}

/// The condition that a message may have one of `states`; a word that no message has is false.
std::string may_have_sql(const std::vector<std::string>& states) {
  std::string sql = "(false";
  for (const auto& state : states) {
    const auto found = state_conditions().find(state);
    if (found != state_conditions().end()) sql += " OR " + found->second;
  }
  return sql + ")";
}

std::string selectors_json(const MessageSelection& selection) {
  auto object = nlohmann::json::object();
  for (const auto& recipient : selection.recipients)
    object["recipients"].push_back(mail::address_of_mailbox(recipient));
  if (!selection.references.empty()) object["references"] = selection.references;
  if (!selection.actions.empty()) object["actions"] = selection.actions;
  if (!selection.owners.empty()) object["owners"] = selection.owners;
  selection.mail.write(object);
  if (selection.since) object["since"] = in_seconds(*selection.since);
  if (selection.until) object["until"] = in_seconds(*selection.until);
  return plain_json(object);
}

/// selected_sql, and that a message may have one of the selected states, if any is.
std::string candidates_sql(const MessageSelection& selection) {
  return selected_sql + selection.mail.message_condition("$1") +
         (selection.states.empty() ? "" : " AND " + may_have_sql(selection.states));
}

/// Those that name an address as one of several recipients, newest first; none if reading them takes too
/// long.
std::vector<std::int64_t> messages_of_several(db::Connection& connection, const std::string& address,
                                              std::int64_t limit) {
  try {
    return connection.transact([&](pqxx::work& transaction) {
      db::Connection::execute(transaction, "SET LOCAL statement_timeout = '500ms'");
      return db::Connection::execute(transaction, R"(
SELECT m.id FROM mailroom_messages m
WHERE (cardinality(m.recipients || m.cc || m.bcc) > 1 OR m.recipients = '{}') AND EXISTS (
  SELECT FROM unnest(m.recipients || m.cc || m.bcc) r (mailbox)
  WHERE mailroom_canonical(mailroom_address(r.mailbox)) = mailroom_canonical(mailroom_address($1)))
ORDER BY m.id DESC LIMIT $2)",
                                     address, limit)
          .values<std::int64_t>();
    });
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::query_cancelled) throw;
    return {};
  }
}

}  // namespace

std::vector<MessageSummary> list_messages(db::Connection& connection, const MessageSelection& selection,
                                          std::int64_t limit) {
  // Of the candidates most have the state: a page more than is wanted finds all.
  constexpr std::int64_t most_at_once = 5'000;
  auto page = selection.states.empty() ? limit : std::min<std::int64_t>(limit + 100, most_at_once);
  const auto sql = queues_sql + (" SELECT m.id" + candidates_sql(selection)) +
                   " AND ($3::bigint IS NULL OR m.id < $3) ORDER BY m.id DESC LIMIT $2";
  return connection.alone([&](pqxx::transaction_base& transaction) {
    std::vector<MessageSummary> messages;
    std::optional<std::int64_t> before;
    for (bool is_last = false; !is_last && static_cast<std::int64_t>(messages.size()) < limit;
         page = std::min(page * 2, most_at_once)) {
      const auto ids = db::Connection::execute(transaction, sql, selectors_json(selection), page, before)
                           .values<std::int64_t>();
      is_last = static_cast<std::int64_t>(ids.size()) < page;
      if (ids.empty()) break;
      before = ids.back();
      auto found = read_summaries(transaction, ids, selection.states);
      std::ranges::move(found, std::back_inserter(messages));
    }
    if (static_cast<std::int64_t>(messages.size()) > limit)
      messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(limit), messages.end());
    return messages;
  });
}

Cancellable find_cancellable(db::Connection& connection, const MessageSelection& selection) {
  const auto sql = fmt::format(
      "{} SELECT m.id, {} AND m.cancelled_at IS NULL AND m.replaced_at IS NULL AS is_open, {} AS has_left {} ORDER BY m.id",
      queues_sql, may_have_sql({"waiting", "scheduled", "deferred", "leased", "not_taken", "no_token"}),
      may_have_sql({"accepted", "unknown", "emitted"}), candidates_sql(selection));
  Cancellable found;
  for (const auto& row : connection.run(sql, selectors_json(selection))) {
    const bool has_left = row.flag("has_left");
    if (row.flag("is_open")) {
      found.open.push_back(row.number("id"));
      found.partly_left += has_left ? 1 : 0;
    } else {
      ++(has_left ? found.left : found.ended);
    }
  }
  return found;
}

std::vector<std::int64_t> find_indexed_messages(db::Connection& connection, const std::string& name,
                                                std::int64_t limit) {
  return connection
      .run(
          R"(
SELECT id FROM mailroom_messages
WHERE lower(left(rtrim(split_part(recipients[1], '<', -1), '>'), 320)) = lower($1) OR reference = $3
ORDER BY id DESC LIMIT $2)",
          mail::address_of_mailbox(name), limit, name)
      .values<std::int64_t>();
}

std::vector<std::int64_t> find_messages(db::Connection& connection, const std::string& name,
                                        std::int64_t limit) {
  auto ids = find_indexed_messages(connection, name, limit);
  if (name.find('@') == std::string::npos) return ids;
  const auto of_several = messages_of_several(connection, name, limit);
  ids.insert(ids.end(), of_several.begin(), of_several.end());
  std::ranges::sort(ids, std::ranges::greater());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(limit)));
  if (!ids.empty()) return ids;
  for (const auto& message : list_messages(connection, {.recipients = {name}}, limit))
    ids.push_back(message.id);
  return ids;
}

}  // namespace mailroom::messages
