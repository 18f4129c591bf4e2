// GMime decodes. A mail that it cannot read counts with its bytes as they are.

#include "messages/raw_text.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <gmime/gmime.h>

#include "base/text.hpp"
#include "bounce/gmime_owner.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom::messages {
namespace {

using bounce::gmime::Owned;
using bounce::gmime::OwnedText;
using bounce::gmime::text_or_empty;

constexpr int deepest_part = 32;
constexpr int raw_bytes_per_part = 4 * 1024 * 1024;

void append_fields(std::string& text, GMimeObject* object) {
  auto* const list = g_mime_object_get_header_list(object);
  for (int i = 0; i < g_mime_header_list_get_count(list); ++i) {
    const auto* const raw = g_mime_header_get_raw_value(g_mime_header_list_get_header_at(list, i));
    if (raw != nullptr) text += bounce::field_text(raw) + '\n';
  }
}

std::string decoded_content(GMimePart* part) {
  const Owned<GMimeStream> stream(g_mime_stream_mem_new());
  auto* const content = g_mime_part_get_content(part);
  if (content != nullptr) g_mime_data_wrapper_write_to_stream(content, stream.get());
  const auto* const bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream.get()));
  return {static_cast<const char*>(static_cast<const void*>(bytes->data)), bytes->len};
}

void append_words(std::string& text, GMimeObject* object, int depth) {
  if (object == nullptr || depth > deepest_part) return;
  append_fields(text, object);
  if (GMIME_IS_MULTIPART(object)) {
    for (int i = 0; i < g_mime_multipart_get_count(GMIME_MULTIPART(object)); ++i)
      append_words(text, g_mime_multipart_get_part(GMIME_MULTIPART(object), i), depth + 1);
  } else if (GMIME_IS_MESSAGE_PART(object)) {
    auto* const inner = g_mime_message_part_get_message(GMIME_MESSAGE_PART(object));
    if (inner == nullptr) return;
    append_fields(text, GMIME_OBJECT(inner));
    append_words(text, g_mime_message_get_mime_part(inner), depth + 1);
  } else if (GMIME_IS_PART(object)) {
    text += text_or_empty(g_mime_part_get_filename(GMIME_PART(object))) + '\n';
    if (GMIME_IS_TEXT_PART(object)) {
      const OwnedText words(g_mime_text_part_get_text(GMIME_TEXT_PART(object)));
      text += text_or_empty(words.get()) + '\n';
    }
    text += decoded_content(GMIME_PART(object)) + '\n';
  }
}

bool is_word(char c, std::string_view others) {
  const auto octet = static_cast<unsigned char>(c);
  return octet > 127 || std::isalnum(octet) != 0 || others.find(c) != std::string_view::npos;
}

/// The raw mails after the message `after`, until they have so many bytes: at least one, if there is one.
std::string next_raw_mails_sql(std::int64_t after) {
  return fmt::format(R"(
SELECT m.id::text AS id, m.raw
FROM (SELECT s.id, s.raw, sum(octet_length(s.raw)) OVER (ORDER BY s.id) - octet_length(s.raw) AS size_before
      FROM (SELECT x.id, x.raw FROM mailroom_messages x WHERE x.id > {} AND x.raw IS NOT NULL ORDER BY x.id LIMIT 1000) s) m
WHERE m.size_before < {}
ORDER BY m.id)",
                     after, raw_bytes_per_part);
}

}  // namespace

std::string text_of_raw_mail(std::string_view mail) {
  static const bool initialised = (g_mime_init(), true);
  static_cast<void>(initialised);
  const Owned<GMimeStream> stream(g_mime_stream_mem_new_with_buffer(mail.data(), mail.size()));
  const Owned<GMimeParser> parser(g_mime_parser_new_with_stream(stream.get()));
  const Owned<GMimeMessage> message(g_mime_parser_construct_message(parser.get(), nullptr));
  if (!message) return std::string(mail);
  std::string text;
  append_fields(text, GMIME_OBJECT(message.get()));
  append_words(text, g_mime_message_get_mime_part(message.get()), 0);
  return text;
}

bool mentions(std::string_view text, const std::vector<std::string>& addresses) {
  const auto lower = lower_case(text);
  return std::ranges::any_of(addresses, [&](const std::string& address) {
    for (auto at = lower.find(address); at != std::string::npos; at = lower.find(address, at + 1)) {
      const auto end = at + address.size();
      const bool begins = at == 0 || !is_word(lower[at - 1], "._+-");
      if (begins && (end == lower.size() || !is_word(lower[end], "-"))) return true;
    }
    return false;
  });
}

std::vector<std::int64_t> raw_mails_naming(db::Connection& connection,
                                           const std::vector<std::string>& addresses) {
  std::vector<std::int64_t> found;
  if (addresses.empty()) return found;
  for (std::int64_t last = 0;;) {
    const auto rows = connection.run_binary(next_raw_mails_sql(last));
    if (rows.empty()) return found;
    for (const auto& row : rows) {
      last = parse_number<std::int64_t>(row.view("id")).value();
      if (mentions(text_of_raw_mail(row.view("raw")), addresses)) found.push_back(last);
    }
  }
}

}  // namespace mailroom::messages
