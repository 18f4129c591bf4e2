// Reads columns by their position. An array travels as JSON, since its text in PostgreSQL has quotes of its
// own.

#include "claim/message_rows.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "db/values.hpp"

namespace mailroom::claim {
namespace {

/// The place of the id among message_columns().
constexpr int id_column = 15;

/// In bytes, as message_size() counts.
constexpr int small_message = 32 * 1024;
constexpr int bytes_per_part = 4 * 1024 * 1024;

/// SQL for the bytes of the texts of a row `m`. It reads none that is stored out of line.
std::string message_size(const std::string& m) {
  return fmt::format(
      "(coalesce(octet_length({0}.text), 0) + coalesce(octet_length({0}.html), 0) + coalesce(pg_column_size({0}.data), 0))",
      m);
}

/// The messages with the ids $1, in their order, until they have $2 bytes: at least one, if any exists.
std::string part_sql() {
  return fmt::format(R"(
SELECT {}
FROM (SELECT o.*, u.place, sum(o.size) OVER (ORDER BY u.place) - o.size AS size_before
      FROM unnest($1::bigint[]) WITH ORDINALITY u(id, place), LATERAL (
        SELECT s.*, {} AS size FROM mailroom_messages s WHERE s.id = u.id LIMIT 1) o) m
WHERE m.size_before < $2
ORDER BY m.place)",
                     message_columns(stored_attachments, "m.id"), message_size("s"));
}

std::string_view view(const pqxx::field& field) {
  return {field.c_str(), field.size()};
}

std::optional<std::string_view> optional_view(const pqxx::field& field) {
  if (field.is_null()) return std::nullopt;
  return view(field);
}

std::vector<std::string> texts_of(const pqxx::field& field) {
  if (field.is_null()) return {};
  return parse_json(view(field)).get<std::vector<std::string>>();
}

/// `ada@example.org` of `Ada <ada@example.org>`.
std::string_view address_of(std::string_view mailbox) {
  const auto begin = mailbox.rfind('<');
  if (begin == std::string_view::npos || !mailbox.ends_with('>')) return mailbox;
  return mailbox.substr(begin + 1, mailbox.size() - begin - 2);
}

std::string_view address_of(const MessageContent& message, int recipient) {
  auto place = static_cast<std::size_t>(recipient - 1);
  for (const auto* list : {&message.recipients, &message.cc, &message.bcc}) {
    if (place < list->size()) return address_of((*list)[place]);
    place -= list->size();
  }
  return {};
}

}  // namespace

std::string message_columns(const std::string& attachments, const std::string& id) {
  return "to_json(m.recipients), to_json(m.cc), to_json(m.bcc), m.sender, m.reply_to, m.headers, m.template, m.locale, "
         "m.data, m.subject, m.text, m.html, m.profile, m.reference, " +
         attachments + ", " + id;
}

MessageContent read_message(const pqxx::row& row, int first_column) {
  const auto at = [&](int column) { return row[first_column + column]; };
  return {.id = at(id_column).as<std::int64_t>(),
          .recipients = texts_of(at(0)),
          .cc = texts_of(at(1)),
          .bcc = texts_of(at(2)),
          .sender = view(at(3)),
          .reply_to = view(at(4)),
          .headers = view(at(5)),
          .template_name = optional_view(at(6)),
          .locale = view(at(7)),
          .data = view(at(8)),
          .subject = optional_view(at(9)),
          .text = optional_view(at(10)),
          .html = optional_view(at(11)),
          .profile = view(at(12)),
          .reference = view(at(13)),
          .attachments = at(14).as<int>()};
}

std::optional<MessageContent> read_optional_message(const pqxx::row& row, int first_column) {
  if (row[first_column + id_column].is_null()) return std::nullopt;
  return read_message(row, first_column);
}

void set_message(TokenRow& row, MessageContent& message) {
  row.content = &message;
  if (row.recipient > 0) row.email = address_of(message, row.recipient);
  const bool has_content = message.template_name || message.subject || message.text || message.html;
  if (!has_content && !row.action->template_name.empty()) message.template_name = row.action->template_name;
}

std::string is_small_message(const std::string& m) {
  return fmt::format("{} <= {}", message_size(m), small_message);
}

MessageContent* MessageReader::get(db::Connection& connection, std::int64_t id, const Ahead& ahead) {
  auto found = messages_.find(id);
  if (found == messages_.end()) {
    read(connection, ahead());
    found = messages_.find(id);
  }
  return found == messages_.end() || !found->second ? nullptr : &*found->second;
}

void MessageReader::read(db::Connection& connection, const std::vector<std::int64_t>& ids) {
  messages_.clear();
  rows_ = connection.run(part_sql(), db::array_text(ids), bytes_per_part);
  for (const auto& row : rows_) {
    auto message = read_message(row, 0);
    messages_.emplace(message.id, std::move(message));
  }
  // The first that exists is among the rows, so all of those up to the last row that have none are deleted.
  const auto last = rows_.empty() ? ids.back() : rows_.back()[id_column].as<std::int64_t>();
  for (const auto id : ids) {
    messages_.emplace(id, std::nullopt);
    if (id == last) break;
  }
}

}  // namespace mailroom::claim
