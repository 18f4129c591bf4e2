// Reads columns by their position. An array travels as JSON, since its text in PostgreSQL has quotes of its
// own.

#include "claim/message_rows.hpp"

#include <nlohmann/json.hpp>

#include "db/values.hpp"

namespace mailroom {
namespace {

std::string_view view(const pqxx::field& field) {
  return {field.c_str(), field.size()};
}

std::optional<std::string_view> optional_view(const pqxx::field& field) {
  if (field.is_null()) return std::nullopt;
  return view(field);
}

std::vector<std::string> texts_of(const pqxx::field& field) {
  if (field.is_null()) return {};
  return nlohmann::json::parse(view(field)).get<std::vector<std::string>>();
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
  return {.id = at(15).as<std::int64_t>(),
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

void set_message(TokenRow& row, MessageContent& message) {
  row.content = &message;
  if (row.recipient > 0) row.email = address_of(message, row.recipient);
  const bool has_content = message.template_name || message.subject || message.text || message.html;
  if (!has_content && !row.action->template_name.empty()) message.template_name = row.action->template_name;
}

void MessagePart::read(Connection& connection, const std::vector<std::int64_t>& ids) {
  messages_.clear();
  rows_ = connection.run(
      "SELECT " +
          message_columns("(SELECT count(*) FROM mailroom_attachments x WHERE x.message = m.id)", "m.id") +
          " FROM mailroom_messages m WHERE m.id = ANY ($1::bigint[])",
      array_text(ids));
  for (const auto& row : rows_) {
    auto message = read_message(row, 0);
    messages_.emplace(message.id, std::move(message));
  }
}

MessageContent* MessagePart::find(std::int64_t id) {
  const auto found = messages_.find(id);
  return found == messages_.end() ? nullptr : &found->second;
}

}  // namespace mailroom
