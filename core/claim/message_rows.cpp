// An array travels as JSON, since its text in PostgreSQL has quotes of its own.

#include "claim/message_rows.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "db/values.hpp"

namespace mailroom::claim {
namespace {

/// In bytes, as message_size() counts.
constexpr int small_message = 32 * 1024;
constexpr int most_listed = 100;  ///< recipients, of one
constexpr int bytes_per_part = 4 * 1024 * 1024;

/// SQL for the bytes of the texts of a row `m`. It reads none that is stored out of line.
std::string message_size(const std::string& m) {
  return fmt::format(
      "(coalesce(octet_length({0}.text), 0) + coalesce(octet_length({0}.html), 0) + coalesce(pg_column_size({0}.data), 0))",
      m);
}

/// The raw mails of the messages `ids`, likewise in parts. Their sizes are known without reading them.
std::string raw_mails_sql(const std::string& ids) {
  return fmt::format(R"(
SELECT m.id::text AS id, m.raw
FROM (SELECT o.*, u.place, sum(octet_length(o.raw)) OVER (ORDER BY u.place) - octet_length(o.raw) AS size_before
      FROM unnest('{}'::bigint[]) WITH ORDINALITY u(id, place), LATERAL (
        SELECT s.id, s.raw FROM mailroom_messages s WHERE s.id = u.id AND s.raw IS NOT NULL LIMIT 1) o) m
WHERE m.size_before < {}
ORDER BY m.place)",
                     ids, bytes_per_part);
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
                     message_columns(), message_size("s"));
}

std::optional<std::string_view> optional_view(const db::Row& row, db::ColumnName name) {
  return row.is_null(name) ? std::nullopt : std::optional(row.view(name));
}

std::vector<std::string> texts_of(const db::Row& row, db::ColumnName name) {
  if (row.is_null(name)) return {};
  return parse_json(row.view(name)).get<std::vector<std::string>>();
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

std::string message_columns(const MessageSource& source) {
  return fmt::format(
      "to_json(m.recipients) AS recipients, to_json(m.cc) AS cc, to_json(m.bcc) AS bcc, m.sender, m.reply_to, "
      "m.headers, m.template, m.locale, m.data, m.subject, m.text, m.html, m.return_path, m.profile, m.topic, "
      "m.reference, "
      "{} AS raw_size, {} AS keeps_return_path, {} AS attachments, {} AS content_of",
      source.raw_size, source.keeps_return_path, source.attachments, source.id);
}

MessageContent read_message(const db::Row& row) {
  return {.id = row.number("content_of"),
          .recipients = texts_of(row, "recipients"),
          .cc = texts_of(row, "cc"),
          .bcc = texts_of(row, "bcc"),
          .sender = row.view("sender"),
          .reply_to = row.view("reply_to"),
          .headers = row.view("headers"),
          .template_name = optional_view(row, "template"),
          .locale = row.view("locale"),
          .data = row.view("data"),
          .subject = optional_view(row, "subject"),
          .text = optional_view(row, "text"),
          .html = optional_view(row, "html"),
          .raw_size = row.optional<std::int64_t>("raw_size"),
          .return_path = optional_view(row, "return_path"),
          .keeps_return_path = row.flag("keeps_return_path"),
          .profile = row.view("profile"),
          .topic = row.view("topic"),
          .reference = row.view("reference"),
          .attachments = row.number<int>("attachments")};
}

std::optional<MessageContent> read_optional_message(const db::Row& row) {
  if (row.is_null("content_of")) return std::nullopt;
  return read_message(row);
}

void set_message(TokenRow& row, MessageContent& message) {
  row.content = &message;
  if (row.recipient > 0) row.email = address_of(message, row.recipient);
  const bool has_content = message.template_name || message.text || message.html || message.raw_size;
  if (!has_content && !row.action->template_name.empty()) message.template_name = row.action->template_name;
}

std::string is_small_message(const std::string& m) {
  // Of one to many recipients the list would come with each of its tokens.
  return fmt::format("{} <= {} AND coalesce(cardinality({}.recipients), 0) <= {}", message_size(m),
                     small_message, m, most_listed);
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
    auto message = read_message(row);
    messages_.emplace(message.id, std::move(message));
  }
  // The first that exists is among the rows, so all of those up to the last row that have none are deleted.
  const auto last = rows_.empty() ? ids.back() : rows_[rows_.size() - 1].number("content_of");
  for (const auto id : ids) {
    messages_.emplace(id, std::nullopt);
    if (id == last) break;
  }
}

void RawMailReader::set(db::Connection& connection, MessageContent& message,
                        const MessageReader::Ahead& ahead) {
  if (!message.raw_size) return;
  auto found = mails_.find(message.id);
  if (found == mails_.end()) {
    read(connection, ahead());
    found = mails_.find(message.id);
  }
  message.raw = found->second;
}

void RawMailReader::read(db::Connection& connection, const std::vector<std::int64_t>& ids) {
  mails_.clear();
  rows_ = connection.run_binary(raw_mails_sql(db::array_text(ids)));
  for (const auto& row : rows_)
    mails_.emplace(parse_number<std::int64_t>(row.view("id")).value(), row.view("raw"));
  // Those before the last that was read have none.
  const auto last =
      rows_.empty() ? ids.back() : parse_number<std::int64_t>(rows_[rows_.size() - 1].view("id")).value();
  for (const auto id : ids) {
    mails_.emplace(id, std::nullopt);
    if (id == last) break;
  }
}

}  // namespace mailroom::claim
