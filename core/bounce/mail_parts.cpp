// GMime parses mails, which are bounded before it sees them.

#include "bounce/mail_parts.hpp"

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "bounce/bounce.hpp"
#include "bounce/gmime_owner.hpp"

namespace mailroom::bounce {
namespace {

using gmime::Owned;
using gmime::OwnedText;
using gmime::text_or_empty;

/// GMime reads groups in lists of addresses by recursion: a field of 400 KB may take 8 MB of stack.
constexpr std::size_t max_field = 16384;
constexpr std::size_t max_text = 65536;
constexpr int max_depth = 16;
constexpr int max_parts = 200;
constexpr int max_fields = 2000;
constexpr int max_lines = 40'000;
constexpr int max_separators = 2000;
constexpr int max_types = 100;

bool begins_with_type(std::string_view line) {
  constexpr std::string_view name = "content-type";
  return line.size() > name.size() && (line[0] == 'c' || line[0] == 'C') &&
         lower_case(line.substr(0, name.size())) == name;
}

/// The beginning of `bytes` that has no field, folded or not, longer than max_field, and neither more lines
/// nor more lines that could begin a part than a report has. GMime reads parts within parts by recursion, and
/// makes an object of each and of each field; what is deeper than its header or a `Content-Type` is of no
/// type that has parts. The same holds for text, which costs at most the end of a mail.
std::string_view bounded(std::string_view bytes) {
  bytes = bytes.substr(0, bounce_limits::max_bytes);
  std::size_t field = 0;
  int lines = 0;
  int separators = 0;
  int types = 0;
  for (std::size_t line = 0; line < bytes.size();) {
    const auto end = std::min(bytes.find('\n', line), bytes.size() - 1) + 1;
    const auto text = bytes.substr(line, end - line);
    if (text[0] != ' ' && text[0] != '\t') field = line;
    if (text.starts_with("--")) ++separators;
    if (begins_with_type(text)) ++types;
    if (end - field > max_field || ++lines > max_lines || separators > max_separators || types > max_types)
      return bytes.substr(0, field);
    line = end;
  }
  return bytes;
}

/// Without the line that separates mails in a mailbox, and empty lines at the top.
std::string_view without_envelope_line(std::string_view bytes) {
  bytes.remove_prefix(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
  if (bytes.starts_with("From ")) bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size() - 1) + 1);
  return bytes;
}

Owned<GMimeParser> parser_of(std::string_view bytes) {
  static const bool initialised = (g_mime_init(), true);
  static_cast<void>(initialised);
  const Owned<GMimeStream> stream(g_mime_stream_mem_new_with_buffer(bytes.data(), bytes.size()));
  return Owned<GMimeParser>(g_mime_parser_new_with_stream(stream.get()));
}

/// Those of a mail that a bounce is told by: most fields are traces and signatures, and cost time.
constexpr std::array<std::string_view, 21> wanted_fields{"from",
                                                         "sender",
                                                         "reply-to",
                                                         "to",
                                                         "subject",
                                                         "return-path",
                                                         "message-id",
                                                         "in-reply-to",
                                                         "delivered-to",
                                                         "x-original-to",
                                                         "envelope-to",
                                                         "x-envelope-to",
                                                         "x-delivered-to",
                                                         "auto-submitted",
                                                         "precedence",
                                                         "x-autoreply",
                                                         "x-autorespond",
                                                         "x-autoresponder",
                                                         "x-apple-action",
                                                         "x-failed-recipients",
                                                         "x-hmxmroriginalrecipient"};

bool is_wanted(const std::string& name) {
  return std::find(wanted_fields.begin(), wanted_fields.end(), name) != wanted_fields.end();
}

HeaderFields fields_of(GMimeObject* object) {
  HeaderFields fields;
  auto* const list = g_mime_object_get_header_list(object);
  const int count = std::min(g_mime_header_list_get_count(list), max_fields);
  for (int i = 0; i < count; ++i) {
    auto* const header = g_mime_header_list_get_header_at(list, i);
    const auto* const raw = g_mime_header_get_raw_value(header);
    auto name = lower_case(text_or_empty(g_mime_header_get_name(header)));
    if (raw == nullptr || !is_wanted(name)) continue;
    fields.add(std::move(name), field_text(raw));
  }
  return fields;
}

std::string content_of(GMimePart* part) {
  auto* const content = g_mime_part_get_content(part);
  if (content == nullptr) return {};
  const Owned<GMimeStream> stream(g_mime_stream_mem_new());
  g_mime_data_wrapper_write_to_stream(content, stream.get());
  const auto* const bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream.get()));
  return {static_cast<const char*>(static_cast<const void*>(bytes->data)), bytes->len};
}

std::string type_of(GMimeObject* object) {
  const OwnedText type(g_mime_content_type_get_mime_type(g_mime_object_get_content_type(object)));
  return lower_case(text_or_empty(type.get()));
}

/// Of a text, the beginning in UTF-8.
std::string words_of(GMimeObject* object) {
  std::string text;
  if (GMIME_IS_TEXT_PART(object)) {
    const OwnedText decoded(g_mime_text_part_get_text(GMIME_TEXT_PART(object)));
    text = text_or_empty(decoded.get());
  }
  if (text.empty()) text = content_of(GMIME_PART(object));
  return sound_utf8(std::string_view(text).substr(0, max_text));
}

/// Fills in MailParts, part by part.
class Collector {
 public:
  explicit Collector(MailParts& parts) : parts_(parts) {}

  void add(GMimeObject* object, int depth = 0) {
    if (object == nullptr || depth > max_depth || ++seen_ > max_parts) return;
    if (GMIME_IS_MULTIPART(object)) {
      const int count = g_mime_multipart_get_count(GMIME_MULTIPART(object));
      // Some forget to begin the first part.
      const auto* const before = g_mime_multipart_get_prologue(GMIME_MULTIPART(object));
      if (count == 0 && parts_.text.empty())
        parts_.text = sound_utf8(text_or_empty(before).substr(0, max_text));
      for (int i = 0; i < std::min(count, max_parts); ++i)
        add(g_mime_multipart_get_part(GMIME_MULTIPART(object), i), depth + 1);
    } else if (GMIME_IS_MESSAGE_PART(object)) {
      auto* const message = g_mime_message_part_get_message(GMIME_MESSAGE_PART(object));
      if (message != nullptr) add_message(message, depth);
    } else if (GMIME_IS_PART(object)) {
      add_leaf(object);
    }
  }

 private:
  void add_message(GMimeMessage* message, int depth) {
    auto headers = fields_of(GMIME_OBJECT(message));
    auto* const body = g_mime_message_get_mime_part(message);
    const bool is_notification = body != nullptr && type_of(body) == "multipart/report";
    if (is_notification && parts_.deliveries.empty() && parts_.wrapped.empty()) {
      MailParts inner;
      inner.headers = headers;
      inner.content_type = type_of(body);
      Collector(inner).add(body, depth + 1);
      parts_.wrapped.push_back(std::move(inner));
    }
    set_original(std::move(headers));
  }

  void add_leaf(GMimeObject* object) {
    const auto type = type_of(object);
    auto* const part = GMIME_PART(object);
    if (type == "message/delivery-status" || type == "message/global-delivery-status") {
      parts_.deliveries.push_back(content_of(part));
    } else if (type == "message/feedback-report") {
      parts_.feedback.push_back(content_of(part));
    } else if (type == "text/rfc822-headers" || type == "text/rfc822" || type == "message/global-headers" ||
               type == "message/rfc822" || type == "message/global") {
      auto blocks = read_field_blocks(content_of(part), 1);
      if (!blocks.empty()) set_original(std::move(blocks.front()));
    } else if (type == "text/plain" && parts_.text.empty()) {
      parts_.text = words_of(object);
    } else if (type == "text/html" && parts_.html.empty()) {
      parts_.html = words_of(object);
    }
  }

  void set_original(HeaderFields fields) {
    if (parts_.has_original) return;
    parts_.has_original = true;
    parts_.original = std::move(fields);
  }

  MailParts& parts_;
  int seen_ = 0;
};

}  // namespace

MailParts read_mail_parts(std::string_view bytes) {
  MailParts parts;
  const auto parser = parser_of(bounded(without_envelope_line(bytes)));
  const Owned<GMimeMessage> message(g_mime_parser_construct_message(parser.get(), nullptr));
  if (!message) return parts;
  parts.headers = fields_of(GMIME_OBJECT(message.get()));
  auto* const body = g_mime_message_get_mime_part(message.get());
  if (body == nullptr) return parts;
  parts.content_type = type_of(body);
  parts.report_type = lower_case(
      text_or_empty(g_mime_content_type_get_parameter(g_mime_object_get_content_type(body), "report-type")));
  Collector(parts).add(body);
  if (trimmed(parts.text).empty()) parts.text = text_of_html(parts.html);
  if (!parts.has_original) parts.original = header_in_text(parts.text);
  return parts;
}

}  // namespace mailroom::bounce
