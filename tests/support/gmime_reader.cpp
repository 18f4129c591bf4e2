#include "support/gmime_reader.hpp"

#include <stdexcept>

#include "bounce/gmime_owner.hpp"

namespace mailroom::test {
namespace {

using bounce::gmime::Owned;
using bounce::gmime::OwnedText;
using bounce::gmime::text_or_empty;

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

void append_headers(ReadMessage& read, GMimeObject* object) {
  auto* const headers = g_mime_object_get_header_list(object);
  for (int i = 0; i < g_mime_header_list_get_count(headers); ++i) {
    auto* const header = g_mime_header_list_get_header_at(headers, i);
    const OwnedText value(g_mime_utils_header_unfold(g_mime_header_get_raw_value(header)));
    read.headers.emplace_back(text_or_empty(g_mime_header_get_name(header)),
                              trimmed(text_or_empty(value.get())));
  }
}

ReadPart read_leaf(GMimeObject* object, const std::string& type) {
  auto* const content = g_mime_part_get_content(GMIME_PART(object));
  if (content == nullptr) throw std::runtime_error("a part has no content");
  const Owned<GMimeStream> stream(g_mime_stream_mem_new());
  g_mime_data_wrapper_write_to_stream(content, stream.get());
  const auto* const bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream.get()));
  return {.type = type,
          .disposition = text_or_empty(g_mime_object_get_disposition(object)),
          .name = text_or_empty(g_mime_part_get_filename(GMIME_PART(object))),
          .content_id = text_or_empty(g_mime_part_get_content_id(GMIME_PART(object))),
          .content = {static_cast<const char*>(static_cast<const void*>(bytes->data)), bytes->len}};
}

void read_part(ReadMessage& read, GMimeObject* object) {
  auto* const content_type = g_mime_object_get_content_type(object);
  const OwnedText type(g_mime_content_type_get_mime_type(content_type));
  if (!read.shape.empty() && read.shape.back() != '(') read.shape += ' ';
  if (GMIME_IS_PART(object)) {
    read.shape += type.get();
    read.parts.push_back(read_leaf(object, text_or_empty(type.get())));
    return;
  }
  if (!GMIME_IS_MULTIPART(object)) throw std::runtime_error("a part is neither a leaf nor of several parts");
  read.shape += text_or_empty(g_mime_content_type_get_media_subtype(content_type)) + "(";
  for (int i = 0; i < g_mime_multipart_get_count(GMIME_MULTIPART(object)); ++i)
    read_part(read, g_mime_multipart_get_part(GMIME_MULTIPART(object), i));
  read.shape += ')';
}

std::vector<std::pair<std::string, std::string>> read_mailboxes(InternetAddressList* list) {
  std::vector<std::pair<std::string, std::string>> mailboxes;
  for (int i = 0; i < internet_address_list_length(list); ++i) {
    auto* const address = internet_address_list_get_address(list, i);
    if (!INTERNET_ADDRESS_IS_MAILBOX(address)) continue;
    mailboxes.emplace_back(
        text_or_empty(internet_address_get_name(address)),
        text_or_empty(internet_address_mailbox_get_idn_addr(INTERNET_ADDRESS_MAILBOX(address))));
  }
  return mailboxes;
}

}  // namespace

std::string with_lf(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') result += text[i];
  }
  return result;
}

std::string decoded_by_gmime(const std::string& value) {
  const OwnedText text(g_mime_utils_header_decode_text(nullptr, value.c_str()));
  return text_or_empty(text.get());
}

ReadMessage read_by_gmime(const std::string& message) {
  static const bool initialised = [] {
    g_mime_init();
    return true;
  }();
  static_cast<void>(initialised);
  const Owned<GMimeStream> stream(g_mime_stream_mem_new_with_buffer(message.data(), message.size()));
  const Owned<GMimeParser> parser(g_mime_parser_new_with_stream(stream.get()));
  const Owned<GMimeMessage> parsed(g_mime_parser_construct_message(parser.get(), nullptr));
  if (!parsed) throw std::runtime_error("GMime finds no message");
  ReadMessage read;
  auto* const body = g_mime_message_get_mime_part(parsed.get());
  append_headers(read, GMIME_OBJECT(parsed.get()));
  append_headers(read, body);
  read.to = read_mailboxes(g_mime_message_get_to(parsed.get()));
  read.cc = read_mailboxes(g_mime_message_get_cc(parsed.get()));
  read.subject = text_or_empty(g_mime_message_get_subject(parsed.get()));
  read_part(read, body);
  return read;
}

}  // namespace mailroom::test
