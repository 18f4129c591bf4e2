// The SQL that reads messages. The states come from mailroom_message_status(), which applications ask too.

#include "messages/message_record.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "db/errors.hpp"
#include "db/values.hpp"
#include "mail/raw_mail.hpp"

namespace mailroom::messages {
namespace {

/// What the role may read: one such as mailroom_reader sees whom a message went to, and not what it said.
struct Sight {
  bool subject = false;
  bool raw = false;
};

Sight sight_of(pqxx::transaction_base& transaction) {
  const auto row = db::Connection::execute(
      transaction,
      "SELECT has_column_privilege('mailroom_messages', 'subject', 'SELECT') AS subject, "
      "has_column_privilege('mailroom_messages', 'raw', 'SELECT') AS raw")[0];
  return {.subject = row.flag("subject"), .raw = row.flag("raw")};
}

std::string summary_sql(const Sight& sight) {
  const std::string has_none = sight.subject ? fmt::format("m.text IS NULL AND m.html IS NULL{}",
                                                           sight.raw ? " AND m.raw IS NULL" : "")
                                             : "true";
  // Of a raw mail the beginning, in which its Subject is.
  const auto* head =
      sight.subject && sight.raw
          ? "CASE WHEN m.subject IS NULL AND m.raw IS NOT NULL THEN encode(substring(m.raw FOR 8192), 'escape') END"
          : "NULL";
  return fmt::format(R"(
SELECT m.id, m.action, CASE WHEN {} THEN coalesce(m.template, c.template) END AS template,
  coalesce((m.recipients || m.cc || m.bcc)[1], a.email) AS recipient,
  greatest(coalesce(cardinality(m.recipients || m.cc || m.bcc), 0), 1) AS recipients,
  m.account, {} AS subject, m.reference, {} AS created_us, s.states, m.enqueued_by, mailroom_owner_name(m.owner) AS owner,
  to_jsonb(coalesce(m.recipients, ARRAY[a.email]::text[])) AS "to", to_jsonb(m.cc) AS cc, to_jsonb(m.bcc) AS bcc,
  {} AS send_after_us, {} AS raw_head
FROM mailroom_messages m
  LEFT JOIN mailroom_actions c ON c.action = m.action
  LEFT JOIN accounts a ON a.id = m.account,
  LATERAL (
    SELECT jsonb_object_agg(e.state, e.count) AS states, array_agg(e.state) AS names
    FROM (SELECT replace(state, ' ', '_') AS state, count(DISTINCT recipient) AS count
          FROM mailroom_message_status(m.id) GROUP BY 1) e) s)",
                     has_none, sight.subject ? "m.subject" : "NULL", db::microseconds_sql("m.created_at"),
                     db::microseconds_sql("m.send_after"), head);
}

/// The texts of a JSON array; none for a null, nor for those in it.
std::vector<std::string> texts_of(const db::Row& row, db::ColumnName name) {
  std::vector<std::string> texts;
  if (row.is_null(name)) return texts;
  for (const auto& text : parse_json(row.view(name)))
    if (text.is_string()) texts.push_back(text.get<std::string>());
  return texts;
}

/// The bytes of `text`, as encode(…, 'escape') writes them.
std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text.substr(i + 1).starts_with('\\')) {
      bytes += text[++i];
    } else {
      int octet = 0;
      for (const auto end = std::min(i + 4, text.size()); ++i < end;)
        octet = octet * 8 + (text[i] - '0');
      bytes += static_cast<char>(octet);
      --i;
    }
  }
  return bytes;
}

MessageSummary read_summary(const db::Row& row) {
  MessageSummary message{.id = row.number("id"),
                         .action = row.text("action"),
                         .template_name = row.text("template"),
                         .recipient = row.text("recipient"),
                         .recipients = row.number("recipients"),
                         .to = texts_of(row, "to"),
                         .cc = texts_of(row, "cc"),
                         .bcc = texts_of(row, "bcc"),
                         .account = row.optional<std::int64_t>("account"),
                         .subject = row.text("subject"),
                         .reference = row.text("reference"),
                         .created_at = row.moment<std::chrono::microseconds>("created_us"),
                         .send_after = row.optional_moment<std::chrono::microseconds>("send_after_us"),
                         .enqueued_by = row.text("enqueued_by"),
                         .owner = row.text("owner")};
  if (!row.is_null("raw_head")) message.subject = mail::subject_of_raw_mail(unescaped(row.view("raw_head")));
  if (row.is_null("states")) return message;
  const auto states = parse_json(row.view("states"));
  for (const auto& [state, count] : states.items())
    message.states.emplace_back(state, count.get<std::int64_t>());
  return message;
}

/// Sets what a summary has not.
void read_request(pqxx::transaction_base& transaction, const Sight& sight, MessageRecord& message) {
  const auto moment = [](const char* column) { return db::microseconds_sql(column); };
  const auto* content =
      sight.subject
          ? "sender, reply_to, headers, data, octet_length(text) AS text, octet_length(html) AS html, octet_length(raw) AS raw, return_path"
          : "NULL AS sender, NULL AS reply_to, NULL AS headers, NULL AS data, NULL AS text, NULL AS html, NULL AS raw, NULL AS return_path";
  const auto row = db::Connection::execute(transaction,
                                           fmt::format(R"(
SELECT {}, locale, profile, topic, idempotency_key, {} AS expires_us, {} AS replaced_us, {} AS cancelled_us, {} AS erased_us
FROM mailroom_messages WHERE id = $1)",
                                                       content, moment("expires_at"), moment("replaced_at"),
                                                       moment("cancelled_at"), moment("erased_at")),
                                           message.summary.id)[0];
  message.sender = row.text("sender");
  message.reply_to = row.text("reply_to");
  message.headers = row.text("headers");
  message.locale = row.text("locale");
  message.data = row.text("data");
  message.text = row.optional<std::int64_t>("text");
  message.html = row.optional<std::int64_t>("html");
  message.raw = row.optional<std::int64_t>("raw");
  message.return_path = row.optional<std::string>("return_path");
  message.profile = row.text("profile");
  message.topic = row.text("topic");
  message.key = row.text("idempotency_key");
  message.expires_at = row.optional_moment<std::chrono::microseconds>("expires_us");
  message.replaced_at = row.optional_moment<std::chrono::microseconds>("replaced_us");
  message.cancelled_at = row.optional_moment<std::chrono::microseconds>("cancelled_us");
  message.erased_at = row.optional_moment<std::chrono::microseconds>("erased_us");
}

std::vector<MessageFile> read_files(pqxx::transaction_base& transaction, std::int64_t message) {
  std::vector<MessageFile> files;
  for (const auto& row : db::Connection::execute(
           transaction,
           "SELECT name, content_type, content_id, octet_length(content) AS size FROM mailroom_attachments "
           "WHERE message = $1 ORDER BY place",
           message)) {
    files.push_back({.name = row.text("name"),
                     .type = row.text("content_type"),
                     .content_id = row.text("content_id"),
                     .size = row.number("size")});
  }
  return files;
}

std::vector<MessageDelivery> read_deliveries(pqxx::transaction_base& transaction, std::int64_t message) {
  std::vector<MessageDelivery> deliveries;
  for (
      const auto& row : db::Connection::execute(
          transaction,
          fmt::format(
              "SELECT recipient, replace(state, ' ', '_') AS state, queue, token, attempts, {} AS at_us, code, reply, message_id "
              "FROM mailroom_message_status($1) ORDER BY token, queue",
              db::microseconds_sql("at")),
          message)) {
    deliveries.push_back({.recipient = row.text("recipient"),
                          .state = row.text("state"),
                          .queue = row.text("queue"),
                          .token = row.optional<std::int64_t>("token"),
                          .attempts = row.optional<int>("attempts").value_or(0),
                          .at = row.optional_moment<std::chrono::microseconds>("at_us"),
                          .code = row.optional<int>("code").value_or(0),
                          .reply = row.text("reply"),
                          .message_id = row.text("message_id")});
  }
  return deliveries;
}

std::string read_uuid(pqxx::transaction_base& transaction, std::int64_t id) {
  const auto may = db::Connection::execute(
      transaction, "SELECT has_function_privilege('mailroom_email_id(bigint)', 'EXECUTE') AS may")[0];
  if (!may.flag("may")) return {};
  return db::Connection::execute(transaction, "SELECT mailroom_email_id($1) AS uuid", id)[0].text("uuid");
}

}  // namespace

bool MessageSummary::has_state(std::string_view state) const {
  return std::ranges::any_of(states, [&](const auto& each) { return each.first == state; });
}

std::vector<MessageSummary> read_summaries(pqxx::transaction_base& transaction,
                                           const std::vector<std::int64_t>& messages,
                                           const std::vector<std::string>& states) {
  std::vector<MessageSummary> summaries;
  for (const auto& row :
       db::Connection::execute(transaction,
                               summary_sql(sight_of(transaction)) +
                                   " WHERE m.id = ANY ($1::bigint[]) "
                                   "AND ($2::text[] = '{}' OR s.names && $2::text[]) ORDER BY m.id DESC",
                               db::array_text(messages), db::array_text(states)))
    summaries.push_back(read_summary(row));
  return summaries;
}

MessageRecord read_message(db::Connection& connection, std::int64_t id) {
  return connection.transact([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    MessageRecord message{.summary = read_summary_within(transaction, id)};
    const auto sight = sight_of(transaction);
    read_request(transaction, sight, message);
    message.uuid = read_uuid(transaction, id);
    if (sight.subject) message.files = read_files(transaction, id);
    message.deliveries = read_deliveries(transaction, id);
    return message;
  });
}

std::string read_raw_mail(db::Connection& connection, std::int64_t id) {
  const auto rows = connection.run_binary(
      fmt::format("SELECT raw FROM mailroom_messages WHERE id = {} AND raw IS NOT NULL", id));
  if (!rows.empty()) return rows[0].text("raw");
  throw Error(
      ExitCode::unusable, fmt::format("message {} has no raw mail", id),
      "the content of a message is removed after messages.retention; mailroom message show says when");
}

MessageSummary read_summary_within(pqxx::transaction_base& transaction, std::int64_t id) {
  const auto rows =
      db::Connection::execute(transaction, summary_sql(sight_of(transaction)) + " WHERE m.id = $1", id);
  if (!rows.empty()) return read_summary(rows[0]);
  throw Error(ExitCode::unusable, fmt::format("there is no message {}", id),
              "mailroom message list shows the newest; its transaction may have been rolled back");
}

std::vector<std::int64_t> tokens_of_messages(pqxx::transaction_base& transaction,
                                             const std::vector<std::int64_t>& messages) {
  return db::Connection::execute(transaction,
                                 "SELECT id FROM tokens WHERE message = ANY ($1::bigint[]) ORDER BY id DESC",
                                 db::array_text(messages))
      .values<std::int64_t>();
}

std::vector<std::int64_t> tokens_of_messages_to(pqxx::transaction_base& transaction,
                                                const std::vector<std::int64_t>& messages,
                                                const std::string& name) {
  return db::Connection::execute(transaction, R"(
SELECT t.id FROM tokens t JOIN mailroom_messages m ON m.id = t.message
WHERE t.message = ANY ($1::bigint[]) AND (m.reference = $2 OR t.recipient IS NULL
  OR mailroom_canonical(mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]))
    = mailroom_canonical(mailroom_address($2)))
ORDER BY t.id DESC)",
                                 db::array_text(messages), name)
      .values<std::int64_t>();
}

namespace {

std::string_view without_prefix(std::string_view text) {
  constexpr std::string_view prefix = "message:";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::optional<std::int64_t> numbered(std::string_view text) {
  const auto id = parse_number<std::int64_t>(without_prefix(text));
  return id && *id >= 0 ? id : std::nullopt;
}

}  // namespace

void check_message_name(std::string_view text) {
  if (numbered(text) || is_uuid(without_prefix(text))) return;
  throw Error(
      ExitCode::usage, fmt::format("'{}' is not the id of a message", text),
      "ids are numbers, as mailroom message list shows them, or uuids, as programs get them over HTTP");
}

std::optional<std::int64_t> find_by_uuid(db::Connection& connection, std::string_view text) {
  if (!is_uuid(without_prefix(text))) return std::nullopt;
  return connection.run("SELECT mailroom_message_of($1::uuid) AS id", std::string(without_prefix(text)))[0]
      .optional<std::int64_t>("id");
}

std::int64_t message_named(db::Connection& connection, std::string_view text) {
  check_message_name(text);
  if (const auto id = numbered(text)) return *id;
  if (const auto id = find_by_uuid(connection, text)) return *id;
  throw Error(ExitCode::unusable, fmt::format("there is no message {}", without_prefix(text)),
              "a database that was not copied from the one that made it has another secret for uuids");
}

}  // namespace mailroom::messages
