// The order of the headers, and the refusal of what could end one early or cannot go with a mail.

#include "mail/message.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fmt/format.h>
#include <set>

#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::mail {
namespace {

/// What PostgreSQL accepts as a name. The Message-ID has to fit on one line, however it encodes the name.
constexpr std::size_t longest_queue = 63;

void require_printable(std::string_view text, std::string_view what) {
  if (is_printable(text)) return;
  throw Error(ExitCode::configuration, fmt::format("{} has a control character or invalid UTF-8", what),
              "write it on one line");
}

std::string problem_of_mailboxes(const std::vector<Mailbox>& mailboxes) {
  for (const auto& [name, address] : mailboxes) {
    if (!is_printable(address.text())) return "the address has a control character or invalid UTF-8";
    if (!is_printable(name)) return "the name of a recipient has a control character or invalid UTF-8";
  }
  return {};
}

std::string problem_of_text(const std::optional<std::string>& text, const char* what) {
  if (!text) return {};
  if (!is_utf8(*text)) return fmt::format("the {} is not valid UTF-8", what);
  return text->find('\0') == std::string::npos ? "" : fmt::format("the {} has a NUL", what);
}

std::string problem_of_headers(const MailContent& content) {
  if (!is_utf8(content.subject)) return "the subject is not valid UTF-8";
  if (!is_printable(content.subject)) return "the subject has a line end or another control character";
  for (const auto* mailboxes : {&content.to, &content.cc}) {
    if (auto problem = problem_of_mailboxes(*mailboxes); !problem.empty()) return problem;
  }
  const bool is_sender_sound =
      !content.sender || is_printable(content.sender->name + content.sender->address.text());
  if (!is_sender_sound || !problem_of_mailboxes(content.reply_to).empty())
    return "the sender or the address for replies has a control character or invalid UTF-8";
  for (const auto& header : content.headers) {
    if (!is_printable(header.name + header.value)) return "a header has a control character or invalid UTF-8";
  }
  if (content.queue.size() > longest_queue)
    return fmt::format("the queue's name has {} octets, at most {} are allowed", content.queue.size(),
                       longest_queue);
  return {};
}

bool is_token_character(char c) {
  return c > 0x20 && c < 0x7F && std::string_view("()<>@,;:\\\"/[]?=").find(c) == std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

/// True for `attribute=token` and `attribute="text"`.
bool is_parameter(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || !is_token(text.substr(0, equals))) return false;
  const auto value = text.substr(equals + 1);
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return is_token(value);
  return std::all_of(value.begin() + 1, value.end() - 1,
                     [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != ';'; });
}

/// True for a type with its parameters that can be encoded in base64: no message, and nothing of several
/// parts.
bool is_content_type(const std::string& text) {
  constexpr std::size_t longest = 200;
  if (text.size() > longest) return false;
  const auto pieces = split(text, ';');
  const auto type = pieces.front();
  const auto slash = type.find('/');
  if (slash == std::string_view::npos || !is_token(type.substr(0, slash)) ||
      !is_token(type.substr(slash + 1)))
    return false;
  const auto main_type = lower_case(type.substr(0, slash));
  return main_type != "multipart" && main_type != "message" &&
         std::all_of(pieces.begin() + 1, pieces.end(),
                     [](std::string_view piece) { return is_parameter(trimmed(piece)); });
}

/// True for words of letters, digits and `signs` with dots between them.
bool is_dotted(std::string_view text, std::string_view signs) {
  const auto words = split(text, '.');
  return std::all_of(words.begin(), words.end(), [&](std::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             signs.find(c) != std::string_view::npos;
    });
  });
}

/// True for what a URL can name as it is, `logo` or `logo@app.example`, and for none.
bool is_content_id(std::string_view text) {
  constexpr std::size_t longest = 200;
  const auto at = std::min(text.find('@'), text.size());
  constexpr std::string_view signs = "-_+=$";
  return text.empty() || (text.size() <= longest && is_dotted(text.substr(0, at), signs) &&
                          (at == text.size() || is_dotted(text.substr(at + 1), signs)));
}

/// Why an application may not give this Message-ID; empty if it may, or gives none. The database says the
/// same where it knows the sender (mailroom_check_message_id()).
std::string problem_of_given_id(const std::string& given, const std::string& domain) {
  constexpr std::size_t longest = 250;
  if (given.empty()) return {};
  const auto at = given.rfind('@');
  const bool is_bracketed = given.starts_with('<') && given.ends_with('>');
  if (!is_bracketed || at == std::string::npos || given.size() > longest ||
      !is_dotted(std::string_view(given).substr(1, at - 1), "!#$%&'*+/=?^_`{|}~-"))
    return "the Message-ID of the message is not such as <order.17@app.example>";
  if (lower_case(given.substr(0, at)).ends_with(".mailroom"))
    return "the Message-ID of the message is of the form that mailroom makes";
  if (lower_case(given.substr(at + 1, given.size() - at - 2)) == lower_case(domain)) return {};
  return fmt::format("the Message-ID of the message is not of the domain of the sender, {}", domain);
}

/// Empty if the mail can be built.
std::string problem_of(const MailContent& content) {
  if (auto problem = problem_of_headers(content); !problem.empty()) return problem;
  if (!content.text && !content.html) return "it has neither text nor HTML";
  if (auto problem = problem_of_text(content.text, "text"); !problem.empty()) return problem;
  if (auto problem = problem_of_text(content.html, "HTML"); !problem.empty()) return problem;
  return problem_of_attachments(content.attachments);
}

/// The first of the addresses of every mail that needs SMTPUTF8; empty if none does.
std::string utf8_address_of(const Mailbox& from, const std::vector<Mailbox>& reply_to) {
  if (needs_smtputf8(from.address)) return from.address.text();
  const auto found =
      std::ranges::find_if(reply_to, [](const auto& mailbox) { return needs_smtputf8(mailbox.address); });
  return found == reply_to.end() ? "" : found->address.text();
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool has_header(const std::vector<ExtraHeader>& headers, std::string_view name) {
  return std::ranges::any_of(headers, [&](const auto& header) { return is_same_name(header.name, name); });
}

std::size_t expected_size(const MailContent& content) {
  constexpr std::size_t headers = 1500;
  auto size = headers + content.subject.size() * 4;
  for (const auto* part : {&content.text, &content.html})
    size += *part ? (*part)->size() * 5 / 4 : 0;
  for (const auto& attachment : content.attachments)
    size += attachment.bytes.size() * 7 / 5;
  return size;
}

/// What is not ASCII is free text; the syntax of the rest is unknown.
void append_header(std::string& text, const ExtraHeader& header) {
  (is_ascii(header.value) ? append_raw_header : append_text_header)(text, header.name, header.value);
}

/// What each mail has beside the headers of a mail of its own, and `headers`.
std::string fixed_headers(const std::vector<ExtraHeader>& headers) {
  std::string text;
  // RFC 3834: no vacation message answers it.
  append_raw_header(text, "Auto-Submitted", "auto-generated");
  // Exchange and Outlook heed this one; a header of the operator's replaces it.
  constexpr std::string_view suppress = "X-Auto-Response-Suppress";
  if (!has_header(headers, suppress)) append_raw_header(text, suppress, "All");
  append_raw_header(text, "MIME-Version", "1.0");
  for (const auto& header : headers)
    append_header(text, header);
  return text;
}

/// The operator's headers and a mail's own, which replace those of the same name.
std::vector<ExtraHeader> merged(const std::vector<ExtraHeader>& configured,
                                const std::vector<ExtraHeader>& own) {
  std::vector<ExtraHeader> all;
  for (const auto& header : configured) {
    if (!has_header(own, header.name)) all.push_back(header);
  }
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace

std::string problem_of_attachments(const std::vector<Attachment>& attachments) {
  constexpr std::size_t most = 100;
  constexpr std::size_t longest_filename = 255;
  if (attachments.size() > most)
    return fmt::format("it has {} attachments, at most {} are allowed", attachments.size(), most);
  std::set<std::string_view> ids;
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    const auto& attachment = attachments[i];
    const auto problem = [&](const std::string& what) {
      return fmt::format("attachment {} {}", i + 1, what);
    };
    if (!is_printable(attachment.name))
      return problem("has a name with a control character or invalid UTF-8");
    if (attachment.name.size() > longest_filename)
      return problem(fmt::format("has a name of {} octets, at most {} are allowed", attachment.name.size(),
                                 longest_filename));
    if (!attachment.content_type.empty() && !is_content_type(attachment.content_type))
      return problem("has a type that is not such as application/pdf or text/csv; charset=utf-8");
    if (!is_content_id(attachment.content_id))
      return problem("has a content id that is not such as logo or logo@app.example");
    if (!attachment.content_id.empty() && !ids.insert(attachment.content_id).second)
      return problem("has the content id of another");
  }
  return {};
}

std::string make_message_id(const MailContent& content, std::string_view domain) {
  const auto number =
      content.message == 0 ? std::to_string(content.token) : fmt::format("m{}", content.message);
  return fmt::format("{}.{}.{}.mailroom@{}", percent_encoded(content.queue, "-_", '='), content.key, number,
                     domain);
}

MessageBuilder::MessageBuilder(const Mailbox& from, const std::vector<Mailbox>& reply_to,
                               const std::vector<ExtraHeader>& headers)
    : headers_(headers), domain_(from.address.domain), utf8_sender_(utf8_address_of(from, reply_to)) {
  require_printable(from.name + from.address.text(), "the sender");
  append_mailboxes_header(from_header_, "From", {from});
  for (const auto& mailbox : reply_to)
    require_printable(mailbox.name + mailbox.address.text(), "the address for replies");
  if (!reply_to.empty()) append_mailboxes_header(reply_to_header_, "Reply-To", reply_to);
  for (const auto& header : headers)
    require_printable(header.name + header.value, "a header");
  extra_headers_ = fixed_headers(headers);
}

const std::string& MessageBuilder::domain_of(const MailContent& content) const {
  return content.sender ? content.sender->address.domain : domain_;
}

std::string MessageBuilder::message_id(const MailContent& content) const {
  const auto& given = content.given_id;
  return given.empty() ? make_message_id(content, domain_of(content)) : given.substr(1, given.size() - 2);
}

std::variant<std::string, Refusal> MessageBuilder::build(const MailContent& content) const {
  if (auto problem = problem_of(content); !problem.empty()) return Refusal{std::move(problem)};
  if (auto problem = problem_of_given_id(content.given_id, domain_of(content)); !problem.empty())
    return Refusal{std::move(problem)};
  std::string message;
  message.reserve(expected_size(content));
  const auto id = message_id(content);
  append_raw_header(message, "Date", date_header_text(content.date));
  append_senders(message, content);
  append_text_header(message, "Subject", content.subject);
  append_raw_header(message, "Message-ID", "<" + id + ">");
  if (content.recipient)
    append_mailboxes_header(message, "X-Mailroom-Recipient", {{.name = "", .address = *content.recipient}});
  message += content.headers.empty() ? extra_headers_ : fixed_headers(merged(headers_, content.headers));
  append_mime_body(message, content, id);
  return message;
}

void MessageBuilder::append_senders(std::string& message, const MailContent& content) const {
  if (content.sender) {
    append_mailboxes_header(message, "From", {*content.sender});
  } else {
    message += from_header_;
  }
  if (!content.to.empty()) append_mailboxes_header(message, "To", content.to);
  // Some servers refuse a mail that names nobody (RFC 5322, section 3.6.3, allows it).
  if (content.to.empty() && content.cc.empty()) message += "To: undisclosed-recipients:;\r\n";
  if (!content.cc.empty()) append_mailboxes_header(message, "Cc", content.cc);
  if (!content.reply_to.empty()) {
    append_mailboxes_header(message, "Reply-To", content.reply_to);
  } else {
    message += reply_to_header_;
  }
}

}  // namespace mailroom::mail
