// Calls mailroom_send() and mailroom_cancel(): what they refuse is refused here in the same words.

#include "messages/new_message.hpp"

#include <cstddef>
#include <fmt/format.h>
#include <span>

#include "base/error.hpp"
#include "base/json.hpp"
#include "crypto/base64.hpp"
#include "db/values.hpp"

namespace mailroom::messages {
namespace {

using Text = std::optional<std::string>;

Text list_json(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  return plain_json(nlohmann::json(texts));
}

Text files_json(const std::vector<NewFile>& files) {
  if (files.empty()) return std::nullopt;
  auto array = nlohmann::json::array();
  for (const auto& file : files) {
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.content.data()), file.content.size());
    array.push_back({{"name", file.name}, {"content_type", file.type}, {"content", crypto::base64(bytes)}});
  }
  return plain_json(array);
}

Text time_text(const std::optional<Moment>& moment) {
  if (!moment) return std::nullopt;
  return *moment >= year_10000 ? "infinity" : precise_moment_text(*moment);
}

constexpr const char* send_sql = R"(
SELECT mailroom_send(
  CASE WHEN $1::jsonb IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text($1::jsonb)) END,
  template => $2, data => $3::jsonb, locale => $4, subject => $5, text => $6, html => $7,
  cc => CASE WHEN $8::jsonb IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text($8::jsonb)) END,
  bcc => CASE WHEN $9::jsonb IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text($9::jsonb)) END,
  sender => $10, reply_to => $11, headers => $12::jsonb, attachments => $13::jsonb, action => $14,
  account => $15::bigint, profile => $16, send_after => $17::timestamptz, expires_at => $18::timestamptz,
  idempotency_key => $19, reference => $20, options => $21::jsonb, topic => $22))";

/// True for the classes of errors that the arguments are to blame for.
bool is_refusal(const db::DatabaseError& error) {
  const auto state = error.sqlstate().substr(0, 2);
  return state == "22" || state == "23" || state == "P0";
}

/// The message that `sent` replaced in this transaction, and whether its mail has left.
void read_replaced(pqxx::transaction_base& transaction, const std::string& key, SentMessage& sent) {
  const auto rows = db::Connection::execute(transaction, R"(
SELECT m.id, coalesce(bool_or(s.state IN ('accepted', 'emitted', 'unknown')), false) AS had_left,
  coalesce(bool_or(s.state = 'leased'), false) AS is_leaving
FROM (SELECT o.id FROM mailroom_messages o JOIN mailroom_messages n ON n.id = $2 AND n.owner IS NOT DISTINCT FROM o.owner
      WHERE o.idempotency_key = $1 AND o.replaced_at >= now() AND o.id <> n.id ORDER BY o.id DESC LIMIT 1) m
  LEFT JOIN LATERAL mailroom_message_status(m.id) s ON true
GROUP BY m.id)",
                                            key, sent.id);
  if (rows.empty()) return;
  sent.replaced = rows[0].number("id");
  sent.had_left = rows[0].flag("had_left");
  sent.is_leaving = rows[0].flag("is_leaving");
}

}  // namespace

SentMessage send_message(db::Connection& connection, const NewMessage& message) {
  try {
    return connection.transact([&](pqxx::work& transaction) {
      const auto id =
          db::Connection::execute(
              transaction, send_sql, list_json(message.recipients), message.template_name, message.data,
              message.locale, message.subject, message.text, message.html, list_json(message.cc),
              list_json(message.bcc), message.sender, message.reply_to, message.headers,
              files_json(message.files), message.action, message.account, message.profile,
              time_text(message.send_after), time_text(message.expires_at), message.key, message.reference,
              std::string(message.replace ? R"({"replace": true})" : "{}"), message.topic)
              .value<std::int64_t>();
      // Otherwise an earlier transaction has used the key.
      const auto rows = db::Connection::execute(
          transaction, "SELECT created_at = now() FROM mailroom_messages WHERE id = $1", id);
      SentMessage sent{.id = id, .is_new = rows.empty() || rows.value<bool>()};
      if (message.replace && sent.is_new) read_replaced(transaction, message.key.value_or(""), sent);
      return sent;
    });
  } catch (const db::DatabaseError& error) {
    if (!is_refusal(error)) throw;
    throw Error(ExitCode::usage, error.what(), error.hint());
  }
}

std::vector<Cancellation> cancel_messages(db::Connection& connection,
                                          const std::vector<std::int64_t>& messages,
                                          const queue::OperationAuthor& author) {
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    std::vector<Cancellation> results;
    for (const auto& row : db::Connection::execute(
             transaction, "SELECT id, mailroom_cancel(id) AS result FROM unnest($1::bigint[]) m (id)",
             db::array_text(messages)))
      results.push_back({.message = row.number("id"), .result = row.text("result")});
    return results;
  });
}

std::int64_t reschedule_messages(db::Connection& connection, const std::vector<std::int64_t>& messages,
                                 Moment send_after, const queue::OperationAuthor& author) {
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    return db::Connection::execute(
               transaction,
               "SELECT count(*) FILTER (WHERE mailroom_reschedule(id, to_timestamp($2::bigint))) AS count "
               "FROM unnest($1::bigint[]) m (id)",
               db::array_text(messages), in_seconds(send_after))[0]
        .number("count");
  });
}

}  // namespace mailroom::messages
