// The parts of a body, their encodings and their nesting. A boundary is a hash of the Message-ID, so attempts
// are equal.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <span>

#include "base/encoded_text.hpp"
#include "base/printable.hpp"
#include "crypto/base64.hpp"
#include "mail/link_template.hpp"
#include "mail/message.hpp"

namespace mailroom::mail {
namespace {

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
constexpr auto is_plain_literal = [](char c) { return c > ' ' && is_literal[static_cast<unsigned char>(c)]; };

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
    const auto* const end = std::find_if_not(within.begin(), within.end(), is_plain_literal);
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

/// 64 bits of FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// Separates the parts. It cannot occur in them: neither quoted-printable nor base64 has `=_`. It differs
/// from mail to mail, as one that is forwarded may become a part of another.
std::string make_boundary(std::string_view id, std::string_view nesting) {
  return fmt::format("=_{:016x}", hash_of(std::string(id).append(nesting)));
}

void append_text_part(std::string& out, std::string_view type, std::string_view text) {
  out.append("Content-Type: ").append(type).append("; charset=utf-8\r\n");
  out += "Content-Transfer-Encoding: quoted-printable\r\n\r\n";
  append_quoted_printable(out, text);
}

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::size_t line = 57;  // bytes, which make 76 columns
  constexpr std::size_t chunk = line * 1024;
  while (!bytes.empty()) {
    const auto now = bytes.substr(0, chunk);
    const auto* const start = static_cast<const std::uint8_t*>(static_cast<const void*>(now.data()));
    const auto encoded = crypto::base64(std::span(start, now.size()));
    for (std::size_t at = 0; at < encoded.size(); at += longest_encoded_line)
      out.append(encoded, at, longest_encoded_line).append("\r\n");
    bytes.remove_prefix(now.size());
  }
}

/// Appends the value of a parameter on lines of its own: quoted, or encoded in pieces (RFC 2231).
void append_filename(std::string& out, const std::string& name) {
  constexpr std::size_t longest = 50;
  const bool is_quotable =
      name.size() <= longest && name.find_first_of("\"\\") == std::string::npos &&
      name.find("=?") == std::string::npos &&
      std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  if (is_quotable) {
    out.append(";\r\n filename=\"").append(name).append("\"");
    return;
  }
  // Whole characters in each piece, as some readers decode each for itself.
  std::vector<std::string> pieces(1);
  for (std::string_view rest = name; !rest.empty();) {
    const auto size = std::max<std::size_t>(sequence_length(rest), 1);
    const auto encoded = percent_encoded(rest.substr(0, size));
    if (pieces.back().size() + encoded.size() > longest) pieces.emplace_back();
    pieces.back() += encoded;
    rest.remove_prefix(size);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    out += pieces.size() == 1 ? ";\r\n filename*=" : fmt::format(";\r\n filename*{}*=", i);
    out.append(i == 0 ? "utf-8''" : "").append(pieces[i]);
  }
}

void append_attachment(std::string& out, const Attachment& attachment, const char* disposition) {
  append_raw_header(out, "Content-Type",
                    attachment.content_type.empty() ? "application/octet-stream" : attachment.content_type);
  out += "Content-Transfer-Encoding: base64\r\n";
  if (!attachment.content_id.empty())
    out.append("Content-ID: <").append(attachment.content_id).append(">\r\n");
  out.append("Content-Disposition: ").append(disposition);
  if (!attachment.name.empty()) append_filename(out, attachment.name);
  out += "\r\n\r\n";
  append_base64(out, attachment.bytes);
}

/// Appends one part.
using Append = std::function<void(std::string& out)>;

void append_multipart(std::string& out, std::string_view type, const std::string& boundary,
                      const std::vector<Append>& parts) {
  // With a parameter before it, the boundary does not fit on the line.
  const auto* const before = type.find(';') == std::string_view::npos ? "; " : ";\r\n ";
  out.append("Content-Type: multipart/").append(type).append(before);
  out.append("boundary=\"").append(boundary).append("\"\r\n\r\n");
  for (const auto& append : parts) {
    // The line end before a boundary belongs to the boundary, not to the part.
    if (&append != &parts.front()) out += "\r\n";
    out.append("--").append(boundary).append("\r\n");
    append(out);
  }
  out.append("\r\n--").append(boundary).append("--\r\n");
}

/// The HTML, with the files that it shows.
void append_html(std::string& out, const MailContent& content, std::string_view id) {
  std::vector<Append> parts{[&](std::string& to) { append_text_part(to, "text/html", *content.html); }};
  for (const auto& attachment : content.attachments) {
    if (attachment.content_id.empty()) continue;
    parts.emplace_back([&](std::string& to) { append_attachment(to, attachment, "inline"); });
  }
  if (parts.size() == 1) return parts.front()(out);
  append_multipart(out, "related; type=\"text/html\"", make_boundary(id, " related"), parts);
}

/// What is read: text, HTML, or both, the one that shows more last (RFC 2046, section 5.1.4).
void append_readable(std::string& out, const MailContent& content, std::string_view id) {
  const Append text = [&](std::string& to) { append_text_part(to, "text/plain", *content.text); };
  const Append html = [&](std::string& to) { append_html(to, content, id); };
  if (!content.html) return text(out);
  if (!content.text) return html(out);
  append_multipart(out, "alternative", make_boundary(id, ""), {text, html});
}

}  // namespace

void append_mime_body(std::string& out, const MailContent& content, std::string_view id) {
  std::vector<Append> parts{[&](std::string& to) { append_readable(to, content, id); }};
  for (const auto& attachment : content.attachments) {
    const bool is_shown = !attachment.content_id.empty() && content.html;
    if (is_shown) continue;
    parts.emplace_back([&](std::string& to) { append_attachment(to, attachment, "attachment"); });
  }
  if (parts.size() == 1) return parts.front()(out);
  append_multipart(out, "mixed", make_boundary(id, " mixed"), parts);
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

}  // namespace mailroom::mail
