// Reads a mail by GMime; the first text and the first HTML are the mail's, all other parts are files.

#include <algorithm>
#include <fmt/format.h>
#include <gmime/gmime.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bounce/gmime_owner.hpp"
#include "crypto/base64.hpp"
#include "preview/preview_source.hpp"

namespace mailroom::preview {
namespace {

using bounce::gmime::Owned;
using bounce::gmime::OwnedText;
using bounce::gmime::text_or_empty;

Owned<GMimeMessage> parse_view(const std::string& source) {
  static const bool initialised = (g_mime_init(), true);
  static_cast<void>(initialised);
  const Owned<GMimeStream> stream(g_mime_stream_mem_new_with_buffer(source.data(), source.size()));
  const Owned<GMimeParser> parser(g_mime_parser_new_with_stream(stream.get()));
  Owned<GMimeMessage> message(g_mime_parser_construct_message(parser.get(), nullptr));
  if (!message || g_mime_message_get_mime_part(message.get()) == nullptr)
    throw Error(ExitCode::failed, "the mail cannot be read");
  return message;
}

std::string decoded_header(GMimeHeader* header) {
  const OwnedText unfolded(g_mime_utils_header_unfold(g_mime_header_get_raw_value(header)));
  const OwnedText decoded(g_mime_utils_header_decode_text(nullptr, unfolded.get()));
  return std::string(trimmed(text_or_empty(decoded.get())));
}

std::string bytes_of(GMimePart* part) {
  const Owned<GMimeStream> stream(g_mime_stream_mem_new());
  auto* const content = g_mime_part_get_content(part);
  if (content != nullptr) g_mime_data_wrapper_write_to_stream(content, stream.get());
  const auto* const bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream.get()));
  return {static_cast<const char*>(static_cast<const void*>(bytes->data)), bytes->len};
}

void add_part(MailView& mail, GMimeObject* object) {
  if (GMIME_IS_MULTIPART(object)) {
    for (int i = 0; i < g_mime_multipart_get_count(GMIME_MULTIPART(object)); ++i)
      add_part(mail, g_mime_multipart_get_part(GMIME_MULTIPART(object), i));
    return;
  }
  if (!GMIME_IS_PART(object)) return;
  auto* const part = GMIME_PART(object);
  const OwnedText owned(g_mime_content_type_get_mime_type(g_mime_object_get_content_type(object)));
  auto type = text_or_empty(owned.get());
  const bool is_file = g_mime_object_get_disposition(object) != nullptr;
  if (!is_file && type == "text/plain" && !mail.text) {
    mail.text = bytes_of(part);
  } else if (!is_file && type == "text/html" && !mail.html) {
    mail.html = bytes_of(part);
  } else {
    mail.files.push_back({.name = text_or_empty(g_mime_part_get_filename(part)),
                          .type = std::move(type),
                          .content_id = text_or_empty(g_mime_part_get_content_id(part)),
                          .bytes = bytes_of(part)});
  }
}

}  // namespace

MailView read_mail(std::string source) {
  const auto message = parse_view(source);
  MailView mail;
  auto* const list = g_mime_object_get_header_list(GMIME_OBJECT(message.get()));
  for (int i = 0; i < g_mime_header_list_get_count(list); ++i) {
    auto* const header = g_mime_header_list_get_header_at(list, i);
    const auto name = text_or_empty(g_mime_header_get_name(header));
    const auto lower = lower_case(name);
    if (lower == "subject") {
      mail.subject = decoded_header(header);
    } else if (lower != "mime-version" && !lower.starts_with("content-")) {
      mail.headers.emplace_back(name, decoded_header(header));
    }
  }
  add_part(mail, g_mime_message_get_mime_part(message.get()));
  mail.source = std::move(source);
  return mail;
}

QuietHtml framed_html(const MailView& mail, bool loads_images, bool follows_links) {
  const auto file_of = [&](std::string_view id) -> std::optional<std::string> {
    const auto file = std::ranges::find(mail.files, id, &ViewedFile::content_id);
    if (file == mail.files.end() || !file->type.starts_with("image/")) return std::nullopt;
    const auto* const bytes = static_cast<const std::uint8_t*>(static_cast<const void*>(file->bytes.data()));
    return fmt::format("data:{};base64,{}", file->type, crypto::base64({bytes, file->bytes.size()}));
  };
  return quiet_html(mail.html.value_or(""),
                    {.loads_images = loads_images, .follows_links = follows_links, .file_of = file_of});
}

}  // namespace mailroom::preview
