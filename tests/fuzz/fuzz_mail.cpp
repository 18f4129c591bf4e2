// A mail of any content is refused, or built so that it reads back as what it was made of: by GMime, a
// library that is not ours, while our own reader checks the rules that GMime forgives.

#include <optional>

#include "base/printable.hpp"
#include "fuzz/fuzz.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"
#include "support/gmime_reader.hpp"
#include "support/parsed_message.hpp"

namespace mailroom::fuzz::fuzz_mail {
namespace {

/// Everything that a mail is made of.
struct Input {
  mail::Mailbox from;
  std::vector<mail::ExtraHeader> headers;
  mail::MailContent content;
};

/// False unless the addresses are such as the configuration and the database may have.
bool read_input(Fields& fields, Input& input) {
  auto from = mail::parse_mailbox(fields.take());
  auto to = mail::parse_address(fields.take());
  auto headers = mail::parse_extra_headers({std::string(fields.take())});
  if (!std::holds_alternative<mail::Mailbox>(from) || !std::holds_alternative<mail::Address>(to))
    return false;
  input.from = std::get<mail::Mailbox>(from);
  auto& content = input.content;
  content.to = {{.name = "", .address = std::get<mail::Address>(to)}};
  if (const auto* valid = std::get_if<std::vector<mail::ExtraHeader>>(&headers)) input.headers = *valid;
  content.queue = fields.take();
  content.key = "0";
  content.subject = fields.take();
  content.text = fields.take();
  content.html = fields.take();
  content.date = bounded_moment(std::chrono::seconds(fields.take_number()));
  content.token = fields.take_number();
  return true;
}

/// What a message has beside that: further recipients, headers of its own, and files.
void read_message(Fields& fields, mail::MailContent& content) {
  if (auto cc = mail::parse_mailbox(fields.take()); std::holds_alternative<mail::Mailbox>(cc))
    content.cc = {std::get<mail::Mailbox>(cc)};
  if (auto headers = mail::parse_message_headers(fields.take());
      std::holds_alternative<std::vector<mail::ExtraHeader>>(headers))
    content.headers = std::get<std::vector<mail::ExtraHeader>>(headers);
  content.given_id = mail::take_message_id(content.headers);
  while (!fields.is_empty() && content.attachments.size() < 4)
    content.attachments.push_back({.name = std::string(fields.take()),
                                   .content_type = std::string(fields.take()),
                                   .content_id = std::string(fields.take()),
                                   .bytes = std::string(fields.take())});
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

bool has_name(const std::vector<mail::ExtraHeader>& headers, const std::string& name) {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const auto& header) { return lower(header.name) == lower(name); });
}

std::vector<mail::ExtraHeader> expected_headers(const Input& input) {
  std::vector<mail::ExtraHeader> all;
  for (const auto& header : input.headers)
    if (!has_name(input.content.headers, header.name)) all.push_back(header);
  all.insert(all.end(), input.content.headers.begin(), input.content.headers.end());
  return all;
}

std::vector<std::string> expected_names(const Input& input) {
  std::vector<std::string> names{"Date", "From", "To"};
  if (!input.content.cc.empty()) names.emplace_back("Cc");
  names.insert(names.end(), {"Subject", "Message-ID", "Auto-Submitted"});
  const auto headers = expected_headers(input);
  if (!has_name(headers, "X-Auto-Response-Suppress")) names.emplace_back("X-Auto-Response-Suppress");
  names.emplace_back("MIME-Version");
  for (const auto& header : headers)
    names.push_back(header.name);
  names.emplace_back("Content-Type");
  return names;
}

bool has_header(const test::ReadMessage& read, const std::string& name, const std::string& value) {
  return std::find(read.headers.begin(), read.headers.end(), std::pair(name, value)) != read.headers.end();
}

/// The same for one that is not ASCII, as a reader shows it.
bool shows_header(const test::ReadMessage& read, const mail::ExtraHeader& header) {
  return std::any_of(read.headers.begin(), read.headers.end(), [&](const auto& candidate) {
    return candidate.first == header.name && test::decoded_by_gmime(candidate.second) == header.value;
  });
}

/// Whether the HTML shows a file, which is then not offered to be saved; null where only the rules of URLs
/// tell.
std::optional<bool> is_shown(const std::string& html, const std::string& id) {
  if (id.empty() || lower(html).find("cid:") == std::string::npos) return false;
  if (id.find('%') == std::string::npos && html.find("\"cid:" + id + "\"") != std::string::npos) return true;
  return std::nullopt;
}

void check_files(const test::ReadMessage& read, const mail::MailContent& content) {
  bool has_invitation = false;
  for (const auto& attachment : content.attachments) {
    const auto shown = is_shown(*content.html, attachment.content_id);
    const auto part = std::find_if(read.parts.begin(), read.parts.end(), [&](const auto& candidate) {
      return candidate.content == attachment.bytes && candidate.name == attachment.name &&
             candidate.content_id == attachment.content_id &&
             (candidate.disposition == "attachment" ? shown != true
                                                    : candidate.disposition == "inline" && shown != false);
    });
    require(part != read.parts.end(), "a file reads back");
    has_invitation =
        has_invitation || (mail::is_invitation(attachment.content_type) && part->disposition == "attachment");
  }
  require(read.parts.size() == content.attachments.size() + 2 + (has_invitation ? 1 : 0),
          "each file is a part, and an invitation an alternative too");
}

void check_message(const std::string& message, const Input& input) {
  const auto& content = input.content;
  const bool is_simple = content.cc.empty() && content.attachments.empty();
  if (is_simple) {
    const bool is_utf8 =
        mail::needs_smtputf8(content.to[0].address) || mail::needs_smtputf8(input.from.address);
    require(test::parse_message(message, is_utf8).names() == expected_names(input),
            "it has its headers and no other");
  }
  const auto read = test::read_by_gmime(message);
  std::vector<std::string> names;
  for (const auto& [name, value] : read.headers)
    names.push_back(name);
  require(names == expected_names(input), "GMime finds its headers and no other");
  // GMime shows a domain that begins with xn-- decoded, so the header itself is compared.
  require(has_header(read, "To", content.to[0].address.text()) && read.to.size() == 1,
          "it is for the recipient alone");
  require(read.cc.size() == content.cc.size(), "it names as many others as it was given");
  require(read.subject == content.subject, "the subject reads back");
  require(read.parts.size() >= 2 && test::with_lf(read.parts[0].content) == test::as_part(*content.text),
          "the text reads back");
  require(test::with_lf(read.parts[1].content) == test::as_part(*content.html), "the HTML reads back");
  check_files(read, content);
  for (const auto& header : expected_headers(input)) {
    require(is_ascii(header.value) ? has_header(read, header.name, header.value) : shows_header(read, header),
            "a header reads back");
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  Input input;
  if (!read_input(fields, input)) return 0;
  auto& content = input.content;
  read_message(fields, content);
  const mail::MessageBuilder builder(input.from, {}, input.headers);
  const auto message = builder.build(content);
  const auto is_text = [](const std::string& text) {
    return is_utf8(text) && text.find('\0') == std::string::npos;
  };
  const bool is_sound = is_printable(content.subject) && is_text(*content.text) && is_text(*content.html) &&
                        content.queue.size() <= 63 &&
                        mail::problem_of_attachments(content.attachments).empty();
  require(std::holds_alternative<std::string>(message) == is_sound, "what cannot be mailed is refused");
  if (!is_sound) return 0;
  try {
    check_message(std::get<std::string>(message), input);
  } catch (const std::exception& error) {
    require(false, error.what());
  }
  require(builder.build(content) == message, "the same content gives the same bytes");
  return 0;
}

const Target target("mail", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_mail
