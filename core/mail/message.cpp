// The order of headers and the MIME parts. The boundary is a hash of the Message-ID, so attempts are equal.

#include "mail/message.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom {
namespace {

/// What PostgreSQL accepts as a name. The Message-ID has to fit on one line, however it encodes the name.
constexpr std::size_t longest_queue = 63;

void require_printable(std::string_view text, std::string_view what) {
  if (is_printable(text)) return;
  throw Error(ExitCode::configuration, fmt::format("{} has a control character or invalid UTF-8", what),
              "write it on one line");
}

/// Empty if the mail can be built.
std::string problem_of(const MailContent& content) {
  if (!is_utf8(content.subject)) return "the subject is not valid UTF-8";
  if (!is_printable(content.subject)) return "the subject has a line end or another control character";
  if (!is_printable(content.to.text())) return "the address has a control character or invalid UTF-8";
  if (content.queue.size() > longest_queue)
    return fmt::format("the queue's name has {} octets, at most {} are allowed", content.queue.size(),
                       longest_queue);
  if (!is_utf8(content.text)) return "the text is not valid UTF-8";
  if (content.html && !is_utf8(*content.html)) return "the HTML is not valid UTF-8";
  return {};
}

/// 64 bits of FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// Separates the parts. It cannot occur in them: quoted-printable has no `=_`. It differs from mail to mail,
/// as one that is forwarded may become a part of another.
std::string make_boundary(std::string_view message_id) {
  return fmt::format("=_{:016x}", hash_of(message_id));
}

void append_body(std::string& out, std::string_view type, std::string_view text) {
  out.append("Content-Type: ").append(type).append("; charset=utf-8\r\n");
  out += "Content-Transfer-Encoding: quoted-printable\r\n\r\n";
  append_quoted_printable(out, text);
}

/// Both parts, the one that shows more last (RFC 2046, section 5.1.4).
void append_alternatives(std::string& out, const MailContent& content, const std::string& boundary) {
  out.append("Content-Type: multipart/alternative; boundary=\"").append(boundary).append("\"\r\n\r\n");
  out.append("--").append(boundary).append("\r\n");
  append_body(out, "text/plain", content.text);
  // The line end before a boundary belongs to the boundary, not to the part.
  out.append("\r\n--").append(boundary).append("\r\n");
  append_body(out, "text/html", *content.html);
  out.append("\r\n--").append(boundary).append("--\r\n");
}

/// The first of the addresses of every mail that needs SMTPUTF8; empty if none does.
std::string utf8_address_of(const Mailbox& from, const std::optional<Mailbox>& reply_to) {
  if (needs_smtputf8(from.address)) return from.address.text();
  return reply_to && needs_smtputf8(reply_to->address) ? reply_to->address.text() : "";
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::size_t expected_size(const MailContent& content) {
  constexpr std::size_t headers = 1500;
  const auto html = content.html ? content.html->size() : 0;
  return headers + content.subject.size() * 4 + (content.text.size() + html) * 5 / 4;
}

constexpr std::size_t longest_encoded_line = 76;

/// The bytes that may stand for themselves anywhere but at the end of a line (blank and tab) or at its start.
constexpr auto is_literal = [] {
  std::array<bool, 256> literal{};
  for (std::size_t c = 0x20; c < 0x7F; ++c)
    literal[c] = c != '=';
  literal['\t'] = true;
  return literal;
}();

/// What stands for itself wherever in a line it comes. A function object, which is inlined where it is
/// passed.
constexpr auto is_plain = [](char c) { return c > ' ' && is_literal[static_cast<unsigned char>(c)]; };

bool is_mistaken_at_start(std::string_view rest) {
  return rest.front() == '.' || rest.starts_with("From ");
}

/// The size of the line end at the front of `rest`; 0 if there is none.
std::size_t line_end(std::string_view rest) {
  return rest.starts_with('\n') ? 1 : rest.starts_with("\r\n") ? 2 : 0;
}

/// True if nothing follows the first character of `rest` in its line.
bool is_last_of_line(std::string_view rest) {
  return rest.size() == 1 || line_end(rest.substr(1)) > 0;
}

class Lines {
 public:
  explicit Lines(std::string& out) : out_(out) {}

  /// Appends what stands for itself at the front of `rest`, wherever in a line it comes, up to the last
  /// columns. Returns its size, which may be 0.
  std::size_t plain(std::string_view rest) {
    if (column_ == 0 && is_mistaken_at_start(rest)) return 0;
    const auto room = longest_encoded_line - 1 - std::min(column_, longest_encoded_line - 1);
    const auto within = rest.substr(0, room);
    const auto* const end = std::find_if_not(within.begin(), within.end(), is_plain);
    const auto size = static_cast<std::size_t>(end - within.begin());
    out_.append(rest.substr(0, size));
    column_ += size;
    return size;
  }

  /// Appends the first character of `rest`.
  void literal(std::string_view rest) {
    make_room(1, rest);
    if (column_ == 0 && is_mistaken_at_start(rest)) return encoded(rest);
    out_ += rest.front();
    ++column_;
  }

  void encoded(std::string_view rest) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    make_room(3, rest);
    const auto byte = static_cast<unsigned char>(rest.front());
    out_ += '=';
    out_ += digits[byte >> 4U];
    out_ += digits[byte & 15U];
    column_ += 3;
  }

  void end() {
    out_ += "\r\n";
    column_ = 0;
  }

 private:
  /// The last column is for the equals sign of a soft line break, unless the line ends anyway.
  void make_room(std::size_t columns, std::string_view rest) {
    const auto end = column_ + columns;
    if (end < longest_encoded_line || (end == longest_encoded_line && is_last_of_line(rest))) return;
    out_ += "=\r\n";
    column_ = 0;
  }

  std::string& out_;
  std::size_t column_ = 0;
};

}  // namespace

std::string make_message_id(std::string_view queue, std::string_view key, std::int64_t token,
                            std::string_view domain) {
  std::string id;
  for (const char c : queue) {
    const bool is_plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    id += is_plain ? std::string(1, c) : fmt::format("={:02X}", static_cast<unsigned char>(c));
  }
  return fmt::format("{}.{}.{}.mailroom@{}", id, key, token, domain);
}

MessageBuilder::MessageBuilder(const Mailbox& from, const std::optional<Mailbox>& reply_to,
                               const std::vector<ExtraHeader>& headers)
    : domain_(from.address.domain), utf8_sender_(utf8_address_of(from, reply_to)) {
  require_printable(from.name + from.address.text(), "the sender");
  append_mailbox_header(from_header_, "From", from);
  if (reply_to) {
    require_printable(reply_to->name + reply_to->address.text(), "the address for replies");
    append_mailbox_header(reply_to_header_, "Reply-To", *reply_to);
  }
  // RFC 3834: no vacation message answers it.
  append_raw_header(extra_headers_, "Auto-Submitted", "auto-generated");
  // Exchange and Outlook heed this one; a header of the operator's replaces it.
  constexpr std::string_view suppress = "X-Auto-Response-Suppress";
  if (std::ranges::none_of(headers, [&](const auto& header) { return is_same_name(header.name, suppress); }))
    append_raw_header(extra_headers_, suppress, "All");
  append_raw_header(extra_headers_, "MIME-Version", "1.0");
  for (const auto& header : headers) {
    require_printable(header.name + header.value, "a header");
    append_raw_header(extra_headers_, header.name, header.value);
  }
}

std::variant<std::string, Refusal> MessageBuilder::build(const MailContent& content) const {
  if (auto problem = problem_of(content); !problem.empty()) return Refusal{std::move(problem)};
  std::string message;
  message.reserve(expected_size(content));
  const auto id = make_message_id(content.queue, content.key, content.token, domain_);
  append_raw_header(message, "Date", date_header_text(content.date));
  message += from_header_;
  append_mailbox_header(message, "To", {.name = "", .address = content.to});
  message += reply_to_header_;
  append_text_header(message, "Subject", content.subject);
  append_raw_header(message, "Message-ID", "<" + id + ">");
  message += extra_headers_;
  if (content.html) {
    append_alternatives(message, content, make_boundary(id));
  } else {
    append_body(message, "text/plain", content.text);
  }
  return message;
}

void append_quoted_printable(std::string& out, std::string_view text) {
  Lines lines(out);
  const bool is_ended = text.ends_with('\n');
  while (!text.empty()) {
    text.remove_prefix(lines.plain(text));
    if (text.empty()) break;
    if (const auto size = line_end(text); size > 0) {
      lines.end();
      text.remove_prefix(size);
      continue;
    }
    const char c = text.front();
    const bool is_blank = c == ' ' || c == '\t';
    if (is_literal[static_cast<unsigned char>(c)] && !(is_blank && is_last_of_line(text))) {
      lines.literal(text);
    } else {
      lines.encoded(text);
    }
    text.remove_prefix(1);
  }
  if (!is_ended) lines.end();
}

}  // namespace mailroom
