// Asks each index in turn. What reads rows without one has a time limit, and says when it has reached it.

#include "desk/desk_search.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "mail/address.hpp"
#include "messages/message_record.hpp"
#include "messages/message_search.hpp"

namespace mailroom::desk {
namespace {

/// Of a Message-ID: the token or message that ours name, QUEUE.KEY.TOKEN.mailroom@ or
/// QUEUE.KEY.mMESSAGE.mailroom@.
struct NamedByMail {
  bool is_message = false;
  std::int64_t id = 0;
};

std::optional<NamedByMail> named_by(std::string_view message_id) {
  const auto end = message_id.find(".mailroom@");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  auto number = message_id.substr(0, end);
  number.remove_prefix(number.rfind('.') + 1);
  NamedByMail named{.is_message = number.starts_with('m')};
  if (named.is_message) number.remove_prefix(1);
  const auto id = parse_number<std::int64_t>(number);
  if (!id) return std::nullopt;
  named.id = *id;
  return named;
}

/// A token of a mail, and its message, if it has one.
void add_mails(const db::Rows& rows, DeskFind& found) {
  for (const auto& row : rows) {
    const auto message = row.optional<std::int64_t>("message");
    if (!message) {
      found.token = row.number("token");
    } else if (std::ranges::find(found.messages, *message) == found.messages.end()) {
      found.messages.push_back(*message);
    }
  }
}

/// The record must have this Message-ID: another database may have mailed with the same number.
constexpr const char* own_mail_sql = R"(
SELECT t.id AS token, t.message FROM tokens t JOIN jobs j ON true JOIN mailroom_deliveries d ON d.queue = j.job_type AND d.token = t.id
WHERE {} = $1 AND (d.message_id = $2 OR d.earlier_attempts @> jsonb_build_array(jsonb_build_object('message_id', $2::text)))
LIMIT 1)";

constexpr const char* other_mail_sql = R"(
SELECT d.token, t.message FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token
WHERE d.message_id = $1 AND d.message_id NOT LIKE '%.mailroom@%' AND d.message_id NOT LIKE '%.amazonses.com' ORDER BY d.token DESC LIMIT 20)";

constexpr const char* queue_id_sql = R"(
SELECT d.token, t.message FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token
WHERE d.last_at > now() - $2::interval AND strpos(concat(d.reply, d.earlier_attempts::text), $1) > 0
  AND concat(d.reply, d.earlier_attempts::text) ~ ('(^|[^[:alnum:]])' || $1 || '([^[:alnum:]]|$)') LIMIT 20)";

void find_by_message_id(db::Connection& connection, const std::string& id, DeskFind& found) {
  if (const auto named = named_by(id)) {
    add_mails(
        connection.run(fmt::format(own_mail_sql, named->is_message ? "t.message" : "t.id"), named->id, id),
        found);
  } else if (lower_case(id).ends_with(".amazonses.com")) {
    found.note =
        "No index has the Message-IDs of Amazon SES. Search for the address, or ask with mailroom message list "
        "--message-id.";
  } else {
    add_mails(connection.run(other_mail_sql, id), found);
  }
}

bool may_be_queue_id(const std::string& text) {
  constexpr std::size_t shortest = 5;
  constexpr std::size_t longest = 40;
  const bool has_digit = text.find_first_of("0123456789") != std::string::npos;
  return has_digit && text.size() >= shortest && text.size() <= longest &&
         std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

/// In the last hour, then in the last day, as far as that can be read at once.
void find_by_queue_id(db::Connection& connection, const std::string& id, DeskFind& found) {
  for (const auto* period : std::array{"1 hour", "1 day"}) {
    try {
      add_mails(connection.transact([&](pqxx::work& transaction) {
        db::Connection::execute(transaction, "SET LOCAL statement_timeout = '120ms'");
        return db::Connection::execute(transaction, queue_id_sql, id, period);
      }),
                found);
    } catch (const db::DatabaseError& error) {
      if (error.sqlstate() != db::sqlstate::query_cancelled) throw;
      found.note = fmt::format(
          "There are too many mails of the last day to look for the queue id {0} among them here: mailroom message "
          "list --queue-id {0} --since 1h does.",
          id);
      return;
    }
    if (!found.empty()) return;
  }
  found.note = "A queue id is looked for among the mails of the last day.";
}

void find_by_name(db::Connection& connection, const std::string& text, DeskFind& found) {
  found.messages = messages::find_indexed_messages(connection, text, most_found + 1);
  found.has_more = found.messages.size() > most_found;
  if (found.has_more) found.messages.pop_back();
  const auto accounts = accounts::find_candidates(connection, text);
  if (!accounts.empty()) found.account = accounts.front();
}

std::optional<std::int64_t> message_in(db::Connection& connection, const std::string& text) {
  const auto name = text.starts_with("message:") ? text.substr(8) : text;
  if (is_uuid(name)) return messages::find_by_uuid(connection, name);
  return parse_number<std::int64_t>(name);
}

}  // namespace

DeskFind find_at_desk(db::Connection& connection, const std::string& text) {
  if (holds_token(text))
    throw Error(ExitCode::usage, "that looks like a token, and a token is not looked up here", token_hint);
  DeskFind found;
  if (const auto message = message_in(connection, text)) {
    if (!connection.run("SELECT id FROM mailroom_messages WHERE id = $1", *message).empty())
      found.messages = {*message};
    if (!found.empty() || text.starts_with("message:")) return found;
  }
  if (text.starts_with('<') && text.ends_with('>')) {
    find_by_message_id(connection, text.substr(1, text.size() - 2), found);
    return found;
  }
  find_by_name(connection, text, found);
  if (!found.empty()) return found;
  if (text.find('@') != std::string::npos) {
    find_by_message_id(connection, text, found);
    if (found.empty() && found.note.empty())
      found.note =
          "An address is looked for as that of an account, and as the first recipient of a message. mailroom "
          "message list --recipient reads the others.";
  } else if (may_be_queue_id(text)) {
    find_by_queue_id(connection, text, found);
  }
  return found;
}

}  // namespace mailroom::desk
