// A statement for each part. A message is shown to one of its recipients without the others, and one that
// only names him without its content: that is somebody else's letter.

#include "messages/exporting.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "messages/forgetting.hpp"
#include "messages/raw_text.hpp"

namespace mailroom::messages {
namespace {

using Json = nlohmann::ordered_json;

/// What is read for a part. $1: the forms of the address; $2: raw mails that name one.
struct ExportStatement {
  ExportPart part;
  bool names_others;  ///< in texts of operators, relays or applications
  std::string sql;
};

constexpr const char* exported_messages_sql = R"(
SELECT jsonb_build_object(
  'id', m.id, 'action', m.action, 'asked_for_at', m.created_at, 'account', m.account,
  'addressed_as', (SELECT jsonb_agg(r.mailbox ORDER BY r.place) FROM unnest(m.recipients || m.cc || m.bcc) WITH ORDINALITY r (mailbox, place)
                   WHERE r.place = ANY (f.places)),
  'other_recipients', greatest((SELECT count(*) FROM unnest(m.recipients || m.cc || m.bcc) r (mailbox) WHERE r.mailbox <> '')
                               - cardinality(f.places), 0),
  'sender', m.sender, 'reply_to', m.reply_to, 'headers', m.headers, 'subject', m.subject, 'text', m.text, 'html', m.html,
  'template', m.template, 'locale', m.locale, 'data', m.data,
  'raw', CASE WHEN f.is_whole THEN replace(encode(m.raw, 'base64'), E'\n', '') END,
  'profile', m.profile, 'topic', m.topic, 'reference', CASE WHEN f.is_whole THEN m.reference END,
  'send_after', m.send_after, 'expires_at', m.expires_at::text, 'cancelled_at', m.cancelled_at, 'replaced_at', m.replaced_at,
  'content_removed_at', m.erased_at,
  'attachments', (SELECT jsonb_agg(jsonb_build_object('name', a.name, 'content_type', a.content_type,
                                                      'content', replace(encode(a.content, 'base64'), E'\n', '')) ORDER BY a.place)
                  FROM mailroom_attachments a WHERE a.message = m.id),
  'tokens', (SELECT jsonb_agg(jsonb_build_object('id', t.id, 'created_at', to_timestamp(t.created_at), 'expires_at', to_timestamp(t.expires_at)::text,
                                                 'consumed_at', to_timestamp(t.consumed_at)) ORDER BY t.id)
             FROM tokens t WHERE t.message = m.id AND (f.is_whole OR t.recipient = ANY (f.places)))) AS record
FROM mailroom_messages_of($1::text[], NULL) f JOIN mailroom_messages m ON m.id = f.id
WHERE $2::bigint[] IS NOT NULL
ORDER BY m.id)";

constexpr const char* exported_named_sql = R"(
SELECT jsonb_build_object(
  'id', m.id, 'asked_for_at', m.created_at,
  'named_in', (SELECT jsonb_agg(c.name ORDER BY c.place) FROM (VALUES
    (1, 'sender', m.sender), (2, 'reply_to', m.reply_to), (3, 'return_path', m.return_path), (4, 'headers', m.headers::text),
    (5, 'subject', m.subject), (6, 'text', m.text), (7, 'html', m.html), (8, 'data', m.data::text), (9, 'reference', m.reference),
    (10, 'idempotency_key', m.idempotency_key), (11, 'profile', m.profile), (12, 'locale', m.locale)) c (place, name, text)
    WHERE mailroom_mentions(c.text, $1::text[])),
  'named_in_files', mailroom_attachments_mention(m.id, $1::text[]) OR m.id = ANY ($2::bigint[])) AS record
FROM mailroom_messages_naming($1::text[], $2::bigint[]) n JOIN mailroom_messages m ON m.id = n.id
WHERE n.id NOT IN (SELECT f.id FROM mailroom_messages_of($1::text[], NULL) f)
ORDER BY m.id)";

/// The tokens of a person: those of his copies of messages.
constexpr const char* own_tokens = R"(
WITH own AS MATERIALIZED (
  SELECT t.id FROM mailroom_messages_of($1::text[], NULL) f JOIN tokens t ON t.message = f.id
  WHERE $2::bigint[] IS NOT NULL AND (f.is_whole OR t.recipient = ANY (f.places))))";

constexpr const char* exported_deliveries_sql = R"(
SELECT CASE WHEN i.is_own
    THEN to_jsonb(d) - '{counted_as,batch,content_hash,not_before}'::text[] || jsonb_build_object('sha256', encode(d.content_hash, 'hex'))
    ELSE jsonb_build_object('queue', d.queue, 'token', d.token, 'last_at', d.last_at, 'reply', d.reply, 'to_another', true) END AS record
FROM mailroom_deliveries d, LATERAL (
  SELECT coalesce(d.token IN (SELECT o.id FROM own o) OR mailroom_canonical(d.address) = ANY ($1::text[])
                  OR d.counted_as = ANY ($1::text[]), false) AS is_own) i
WHERE i.is_own OR mailroom_mentions(concat_ws(E'\n', d.reply, d.message_id, d.earlier_attempts), $1::text[])
ORDER BY d.token, d.queue)";

constexpr const char* exported_outcomes_sql = R"(
SELECT to_jsonb(u) AS record FROM mailroom_outcomes u
WHERE u.token IN (SELECT o.id FROM own o) OR mailroom_canonical(u.address) = ANY ($1::text[]) OR mailroom_mentions(u.reply, $1::text[])
ORDER BY u.id)";

constexpr const char* exported_bounces_sql = R"(
SELECT CASE WHEN mailroom_canonical(b.address) = ANY ($1::text[])
    THEN to_jsonb(b) - '{digest,place,source,report}'::text[] || jsonb_build_object('report', replace(encode(b.report, 'base64'), E'\n', ''))
    ELSE jsonb_build_object('id', b.id, 'at', b.at, 'kind', b.kind, 'reply', b.reply, 'of_another', true) END AS record
FROM mailroom_bounces b
WHERE $2::bigint[] IS NOT NULL AND (
  mailroom_canonical(b.address) = ANY ($1::text[]) OR mailroom_mentions(b.reply, $1::text[])
  OR mailroom_mentions(encode(b.report, 'escape'), $1::text[]))
ORDER BY b.id)";

constexpr const char* exported_suppressions_sql = R"(
SELECT to_jsonb(s) - 'added_by' AS record FROM mailroom_suppressions s
WHERE $2::bigint[] IS NOT NULL AND s.address = ANY ($1::text[]) ORDER BY s.added_at)";

// Who did an operation is another person.
constexpr const char* exported_operations_sql = R"(
SELECT jsonb_build_object('id', o.id, 'at', o.at, 'kind', o.kind, 'queue', o.queue, 'account', o.account, 'reason', o.reason,
                          'details', o.details) AS record
FROM mailroom_operations o
WHERE $2::bigint[] IS NOT NULL AND mailroom_mentions(concat_ws(E'\n', o.reason, o.details), $1::text[]) ORDER BY o.id)";

constexpr const char* exported_sinks_sql = R"(
SELECT jsonb_build_object('name', s.name, 'since', s.since, 'reason', s.reason, 'learnt', s.learnt) AS record FROM mailroom_sinks s
WHERE $2::bigint[] IS NOT NULL AND mailroom_mentions(concat_ws(E'\n', s.reason, s.learnt), $1::text[]) ORDER BY s.name)";

constexpr const char* exported_queues_sql = R"(
SELECT jsonb_build_object('name', q.name, 'pause_reason', q.pause_reason) AS record FROM mailroom_queues q
WHERE $2::bigint[] IS NOT NULL AND mailroom_mentions(q.pause_reason, $1::text[]) ORDER BY q.name)";

constexpr const char* exported_schema_sql = R"(
SELECT jsonb_build_object('id', h.id, 'reason', h.reason) AS record FROM mailroom_schema_history h
WHERE $2::bigint[] IS NOT NULL AND mailroom_mentions(h.reason, $1::text[]) ORDER BY h.id)";

constexpr const char* exported_accounts_sql = R"(
SELECT jsonb_build_object('id', a.id, 'email', a.email, 'login', a.login, 'status', a.status,
  'tokens', (SELECT jsonb_agg(jsonb_build_object('id', t.id, 'action', t.action, 'created_at', to_timestamp(t.created_at),
                                                 'expires_at', to_timestamp(t.expires_at)::text, 'consumed_at', to_timestamp(t.consumed_at)) ORDER BY t.id)
             FROM tokens t WHERE t.account = a.id)) AS record
FROM accounts a WHERE $2::bigint[] IS NOT NULL AND mailroom_canonical(a.email) = ANY ($1::text[]) ORDER BY a.id)";

const std::vector<ExportStatement>& statements() {
  static const std::vector<ExportStatement> all{
      {{"accounts", "accounts"}, false, exported_accounts_sql},
      {{"messages", "mailroom_messages"}, false, exported_messages_sql},
      {{"messages_to_others", "mailroom_messages"}, false, exported_named_sql},
      {{"deliveries", "mailroom_deliveries"}, true, std::string(own_tokens) + exported_deliveries_sql},
      {{"outcomes", "mailroom_outcomes"}, true, std::string(own_tokens) + exported_outcomes_sql},
      {{"came_back", "mailroom_bounces"}, true, exported_bounces_sql},
      {{"suppressions", "mailroom_suppressions"}, false, exported_suppressions_sql},
      {{"operations", "mailroom_operations"}, true, exported_operations_sql},
      {{"relays", "mailroom_sinks"}, true, exported_sinks_sql},
      {{"queues", "mailroom_queues"}, true, exported_queues_sql},
      {{"migrations", "mailroom_schema_history"}, true, exported_schema_sql}};
  return all;
}

bool is_of_local_part(char c) {
  const auto octet = static_cast<unsigned char>(c);
  return octet > 127 || std::isalnum(octet) != 0 ||
         std::string_view("!#$%&'*+-/=?^_`{|}~.").find(c) != std::string_view::npos;
}

bool is_of_domain(char c) {
  const auto octet = static_cast<unsigned char>(c);
  return octet > 127 || std::isalnum(octet) != 0 || c == '-' || c == '.';
}

void remove_others(Json& value, const std::vector<std::string>& own) {
  if (value.is_string()) {
    value = without_other_addresses(value.get_ref<const std::string&>(), own);
  } else if (value.is_array()) {
    for (auto& each : value)
      remove_others(each, own);
  } else if (value.is_object()) {
    for (auto& [name, each] : value.items()) {
      // An id of a mail looks like an address; the bytes of a report have none that is readable.
      if (name != "message_id" && name != "report") remove_others(each, own);
    }
  }
}

}  // namespace

const std::vector<ExportPart>& export_parts() {
  static const std::vector<ExportPart> parts = [] {
    std::vector<ExportPart> all;
    for (const auto& statement : statements())
      all.push_back(statement.part);
    return all;
  }();
  return parts;
}

std::string without_other_addresses(std::string_view text, const std::vector<std::string>& own) {
  std::string kept;
  std::size_t done = 0;
  for (auto at = text.find('@'); at != std::string_view::npos; at = text.find('@', std::max(at + 1, done))) {
    auto begin = at;
    while (begin > done && is_of_local_part(text[begin - 1]))
      --begin;
    auto end = at + 1;
    while (end < text.size() && is_of_domain(text[end]))
      ++end;
    while (end > at + 1 && (text[end - 1] == '.' || text[end - 1] == '-'))
      --end;
    if (begin == at || end == at + 1) continue;
    const auto address = lower_case(text.substr(begin, end - begin));
    if (std::ranges::find(own, address) != own.end()) continue;
    kept += text.substr(done, begin - done);
    kept += "(another address)";
    done = end;
  }
  kept += text.substr(done);
  return kept;
}

void read_export(db::Connection& connection, const std::string& address,
                 const std::function<void(const ExportPart& part, const std::string& record)>& each) {
  const auto own = forms_of({.addresses = {address}, .reference = {}});
  const auto raw = db::array_text(raw_mails_naming(connection, own));
  connection.transact([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    for (const auto& [part, names_others, sql] : statements()) {
      for (const auto& row : db::Connection::execute(transaction, sql, db::array_text(own), raw)) {
        auto record = parse_ordered_json(row.view("record"));
        if (names_others) remove_others(record, own);
        each(part, plain_json(record));
      }
    }
  });
}

}  // namespace mailroom::messages
