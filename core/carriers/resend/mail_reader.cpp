// Reads a mail of ours back, as Resend takes no MIME: its API wants the parts by name. GMime parses; what
// Resend has fields for is taken out, and what it sets itself is left out.

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "bounce/gmime_owner.hpp"
#include "carriers/resend/carrier.hpp"
#include "crypto/base64.hpp"
#include "mail/message.hpp"
#include "mail/raw_mail.hpp"

namespace mailroom::resend {
namespace {

using OrderedJson = nlohmann::ordered_json;

using bounce::gmime::Owned;
using bounce::gmime::OwnedText;
using bounce::gmime::text_or_empty;

/// What Resend sets, or has a field for. What describes the body is of the body.
constexpr std::array<std::string_view, 9> fields{"date",     "from",    "to",         "cc",          "bcc",
                                                 "reply-to", "subject", "message-id", "mime-version"};

Owned<GMimeMessage> parse(std::string_view bytes) {
  static const bool initialised = (g_mime_init(), true);
  static_cast<void>(initialised);
  const Owned<GMimeStream> stream(g_mime_stream_mem_new_with_buffer(bytes.data(), bytes.size()));
  const Owned<GMimeParser> parser(g_mime_parser_new_with_stream(stream.get()));
  Owned<GMimeMessage> message(g_mime_parser_construct_message(parser.get(), nullptr));
  if (!message || g_mime_message_get_mime_part(message.get()) == nullptr)
    throw Error(ExitCode::failed, "the mail cannot be read back");
  return message;
}

/// As RFC 5322 quotes a text that has one of `special`.
std::string quoted_if(std::string_view special, std::string_view text) {
  if (!text.empty() && text.find_first_of(special) == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

/// `Ada Lovelace <ada@example.org>`, in UTF-8. GMime would leave a quote in a name as it is.
std::string mailbox_text(InternetAddress* address) {
  const auto name = text_or_empty(internet_address_get_name(address));
  if (name.empty() || !INTERNET_ADDRESS_IS_MAILBOX(address)) {
    const OwnedText text(internet_address_to_string(address, nullptr, FALSE));
    return text_or_empty(text.get());
  }
  auto* const mailbox = INTERNET_ADDRESS_MAILBOX(address);
  return quoted_if("()<>[]:;@\\,\"", name) + " <" +
         text_or_empty(internet_address_mailbox_get_addr(mailbox)) + ">";
}

OrderedJson mailbox_texts(InternetAddressList* list) {
  auto texts = OrderedJson::array();
  for (int i = 0; i < internet_address_list_length(list); ++i)
    texts.push_back(mailbox_text(internet_address_list_get_address(list, i)));
  return texts;
}

/// The recipient, with the name that the header has for it.
std::string recipient_of(GMimeMessage* message, const std::string& address) {
  for (const auto kind : {GMIME_ADDRESS_TYPE_TO, GMIME_ADDRESS_TYPE_CC}) {
    auto* const list = g_mime_message_get_addresses(message, kind);
    for (int i = 0; i < internet_address_list_length(list); ++i) {
      auto* const entry = internet_address_list_get_address(list, i);
      if (!INTERNET_ADDRESS_IS_MAILBOX(entry)) continue;
      auto* const mailbox = INTERNET_ADDRESS_MAILBOX(entry);
      if (text_or_empty(internet_address_mailbox_get_idn_addr(mailbox)) == address)
        return mailbox_text(entry);
    }
  }
  return address;
}

OrderedJson other_headers(GMimeMessage* message) {
  auto headers = OrderedJson::object();
  auto* const list = g_mime_object_get_header_list(GMIME_OBJECT(message));
  for (int i = 0; i < g_mime_header_list_get_count(list); ++i) {
    auto* const header = g_mime_header_list_get_header_at(list, i);
    const auto name = text_or_empty(g_mime_header_get_name(header));
    const auto lower = lower_case(name);
    if (std::ranges::count(fields, lower) > 0 || lower.starts_with("content-")) continue;
    const OwnedText unfolded(g_mime_utils_header_unfold(g_mime_header_get_raw_value(header)));
    const OwnedText decoded(g_mime_utils_header_decode_text(nullptr, unfolded.get()));
    headers[name] = std::string(trimmed(text_or_empty(decoded.get())));
  }
  return headers;
}

std::string content_of(GMimePart* part) {
  const Owned<GMimeStream> stream(g_mime_stream_mem_new());
  auto* const content = g_mime_part_get_content(part);
  if (content != nullptr) g_mime_data_wrapper_write_to_stream(content, stream.get());
  const auto* const bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream.get()));
  return {static_cast<const char*>(static_cast<const void*>(bytes->data)), bytes->len};
}

/// `text/calendar; method=REQUEST`: the name of a file has a field of its own.
std::string content_type_of(GMimeObject* object) {
  auto* const type = g_mime_object_get_content_type(object);
  const OwnedText owned(g_mime_content_type_get_mime_type(type));
  auto text = text_or_empty(owned.get());
  auto* const parameters = g_mime_content_type_get_parameters(type);
  for (int i = 0; i < g_mime_param_list_length(parameters); ++i) {
    auto* const parameter = g_mime_param_list_get_parameter_at(parameters, i);
    const auto name = text_or_empty(g_mime_param_get_name(parameter));
    if (lower_case(name) == "name") continue;
    text += "; " + name + "=" +
            quoted_if(" \t()<>@,;:\\\"/[]?=", text_or_empty(g_mime_param_get_value(parameter)));
  }
  return text;
}

std::string with_line_feeds(const std::string& text) {
  std::string changed;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') changed += text[i];
  }
  return changed;
}

std::string base64_of(std::string_view bytes) {
  return crypto::base64(
      {static_cast<const std::uint8_t*>(static_cast<const void*>(bytes.data())), bytes.size()});
}

/// Fills in the fields of a body, part by part.
class Body {
 public:
  explicit Body(OrderedJson& mail) : mail_(mail) {}

  void add(GMimeObject* object) {
    if (GMIME_IS_MULTIPART(object)) {
      const OwnedText kind(g_mime_content_type_get_mime_type(g_mime_object_get_content_type(object)));
      const bool was_alternative =
          std::exchange(is_alternative_, text_or_empty(kind.get()) == "multipart/alternative");
      for (int i = 0; i < g_mime_multipart_get_count(GMIME_MULTIPART(object)); ++i)
        add(g_mime_multipart_get_part(GMIME_MULTIPART(object), i));
      is_alternative_ = was_alternative;
      return;
    }
    // No mail of ours has another mail in it.
    if (!GMIME_IS_PART(object)) throw Error(ExitCode::failed, "a part of the mail cannot be read back");
    auto* const part = GMIME_PART(object);
    const OwnedText owned(g_mime_content_type_get_mime_type(g_mime_object_get_content_type(object)));
    const auto type = text_or_empty(owned.get());
    const bool is_file = g_mime_object_get_disposition(object) != nullptr;
    if (!is_file && type == "text/plain") {
      mail_["text"] = with_line_feeds(content_of(part));
    } else if (!is_file && type == "text/html") {
      mail_["html"] = with_line_feeds(content_of(part));
    } else if (!is_file && is_alternative_ && type == "text/calendar") {
      // Resend has no place for it. The same is attached, and gets its type.
      invitation_type_ = content_type_of(object);
    } else {
      add_file(part);
    }
  }

 private:
  void add_file(GMimePart* part) {
    auto name = text_or_empty(g_mime_part_get_filename(part));
    const auto id = text_or_empty(g_mime_part_get_content_id(part));
    // Resend wants a name.
    if (name.empty()) name = id.empty() ? "attachment" : id;
    OrderedJson file;
    file["filename"] = name;
    file["content"] = base64_of(content_of(part));
    auto type = content_type_of(GMIME_OBJECT(part));
    if (type == mail::invitation_file_type && !invitation_type_.empty())
      type = std::exchange(invitation_type_, {});
    file["content_type"] = std::move(type);
    if (!id.empty()) file["content_id"] = id;
    mail_["attachments"].push_back(std::move(file));
  }

  OrderedJson& mail_;
  bool is_alternative_ = false;
  std::string invitation_type_;
};

/// Looks for a part that Body would drop, or change into another one.
class UnusualPart {
 public:
  std::string find(GMimeObject* object) {
    const OwnedText owned(g_mime_content_type_get_mime_type(g_mime_object_get_content_type(object)));
    const auto type = lower_case(text_or_empty(owned.get()));
    if (GMIME_IS_MULTIPART(object)) return find_within(GMIME_MULTIPART(object), type);
    if (!GMIME_IS_PART(object)) return "a part of the type " + type;
    if (g_mime_object_get_disposition(object) != nullptr) return {};
    if (type == "text/plain" || type == "text/html") {
      const bool is_second = std::exchange(type == "text/html" ? has_html_ : has_text_, true);
      return is_second ? "a second part of the type " + type : "";
    }
    return is_alternative_ ? "an alternative of the type " + type : "";
  }

 private:
  std::string find_within(GMimeMultipart* parts, const std::string& type) {
    if (type != "multipart/mixed" && type != "multipart/alternative" && type != "multipart/related")
      return "a part of the type " + type;
    const bool was_alternative = std::exchange(is_alternative_, type == "multipart/alternative");
    std::string found;
    for (int i = 0; found.empty() && i < g_mime_multipart_get_count(parts); ++i)
      found = find(g_mime_multipart_get_part(parts, i));
    is_alternative_ = was_alternative;
    return found;
  }

  bool is_alternative_ = false;
  bool has_text_ = false;
  bool has_html_ = false;
};

}  // namespace

std::string inexpressible_part(std::string_view bytes) {
  if (!mail::raw_field(bytes, "dkim-signature").empty()) return "a DKIM signature";
  if (!mail::raw_field(bytes, "resent-from").empty()) return "the header of a mail that was resent";
  const auto message = parse(bytes);
  return UnusualPart().find(g_mime_message_get_mime_part(message.get()));
}

ResendMail read_resend_mail(std::string_view bytes, const delivery::Envelope& envelope,
                            std::string_view tags) {
  const auto message = parse(bytes);
  auto* const from = g_mime_message_get_from(message.get());
  OrderedJson mail;
  mail["from"] = internet_address_list_length(from) > 0
                     ? mailbox_text(internet_address_list_get_address(from, 0))
                     : envelope.from;
  mail["to"] = OrderedJson::array({recipient_of(message.get(), envelope.to)});
  mail["subject"] = text_or_empty(g_mime_message_get_subject(message.get()));
  if (auto replies = mailbox_texts(g_mime_message_get_reply_to(message.get())); !replies.empty())
    mail["reply_to"] = std::move(replies);
  Body(mail).add(g_mime_message_get_mime_part(message.get()));
  if (auto headers = other_headers(message.get()); !headers.empty()) mail["headers"] = std::move(headers);
  auto json = json_text(mail);
  if (!tags.empty()) {
    json.pop_back();
    json.append(R"(,"tags":)").append(tags).append("}");
  }
  return {.json = std::move(json),
          .message_id = text_or_empty(g_mime_message_get_message_id(message.get())),
          .date = text_or_empty(g_mime_object_get_header(GMIME_OBJECT(message.get()), "Date"))};
}

}  // namespace mailroom::resend
