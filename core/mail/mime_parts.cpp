// The parts of a body and their nesting. A boundary is a hash of the Message-ID, so attempts
// are equal.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <span>

#include "base/encoded_text.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "config/server_url.hpp"
#include "crypto/base64.hpp"
#include "mail/link_template.hpp"
#include "mail/message.hpp"

namespace mailroom::mail {
namespace {

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

void append_attachment(std::string& out, const Attachment& attachment, const char* disposition,
                       std::string_view type) {
  append_raw_header(out, "Content-Type", type.empty() ? "application/octet-stream" : type);
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

/// The ids that `html` names as `cid:ID`, where a URL ends at what cannot be in one.
std::vector<std::string> ids_shown_by(std::string_view html) {
  constexpr std::string_view scheme = "cid:";
  std::vector<std::string> ids;
  for (std::size_t at = html.find(':'); at != std::string_view::npos; at = html.find(':', at + 1)) {
    if (at + 1 < scheme.size() || lower_case(html.substr(at + 1 - scheme.size(), scheme.size())) != scheme)
      continue;
    const auto rest = html.substr(at + 1);
    const auto url = rest.substr(0, rest.find_first_of("\"'<>()& \t\r\n,;\\"));
    ids.push_back(config::percent_decoded(url).value_or(std::string(url)));
  }
  return ids;
}

/// The files of a mail by where they go. A program that shows HTML hides those beside it, and offers only the
/// others to its reader.
struct Files {
  std::vector<const Attachment*> shown{};    ///< by the HTML
  std::vector<const Attachment*> offered{};  ///< to be saved
  const Attachment* invitation =
      nullptr;  ///< the first that mail programs act upon; one of those to be saved
};

Files files_of(const MailContent& content) {
  const bool may_show = content.html && std::ranges::any_of(content.attachments, [](const auto& attachment) {
                          return !attachment.content_id.empty();
                        });
  const auto ids = may_show ? ids_shown_by(*content.html) : std::vector<std::string>();
  Files files;
  for (const auto& attachment : content.attachments) {
    const bool is_shown =
        !attachment.content_id.empty() && std::ranges::find(ids, attachment.content_id) != ids.end();
    (is_shown ? files.shown : files.offered).push_back(&attachment);
    if (!is_shown && files.invitation == nullptr && is_invitation(attachment.content_type))
      files.invitation = &attachment;
  }
  return files;
}

/// The HTML, with the files that it shows.
void append_html(std::string& out, const MailContent& content, const Files& files, std::string_view id) {
  std::vector<Append> parts{[&](std::string& to) { append_text_part(to, "text/html", *content.html); }};
  for (const auto* file : files.shown)
    parts.emplace_back(
        [file](std::string& to) { append_attachment(to, *file, "inline", file->content_type); });
  if (parts.size() == 1) return parts.front()(out);
  append_multipart(out, "related; type=\"text/html\"", make_boundary(id, " related"), parts);
}

void append_invitation(std::string& out, const Attachment& file) {
  const bool has_charset = lower_case(file.content_type).find("charset=") != std::string::npos;
  append_raw_header(out, "Content-Type", file.content_type + (has_charset ? "" : "; charset=utf-8"));
  out += "Content-Transfer-Encoding: base64\r\n\r\n";
  append_base64(out, file.bytes);
}

/// What is read: text, HTML, or both, the one that shows more last (RFC 2046, section 5.1.4), and behind them
/// what a calendar reads.
void append_readable(std::string& out, const MailContent& content, const Files& files, std::string_view id) {
  std::vector<Append> parts;
  if (content.text)
    parts.emplace_back([&](std::string& to) { append_text_part(to, "text/plain", *content.text); });
  if (content.html) parts.emplace_back([&](std::string& to) { append_html(to, content, files, id); });
  if (files.invitation != nullptr)
    parts.emplace_back([&](std::string& to) { append_invitation(to, *files.invitation); });
  if (parts.size() == 1) return parts.front()(out);
  append_multipart(out, "alternative", make_boundary(id, ""), parts);
}

}  // namespace

bool is_invitation(std::string_view content_type) {
  const auto pieces = split(content_type, ';');
  return lower_case(trimmed(pieces.front())) == "text/calendar" &&
         std::any_of(pieces.begin() + 1, pieces.end(), [](std::string_view piece) {
           return lower_case(trimmed(piece)).starts_with("method=");
         });
}

void append_mime_body(std::string& out, const MailContent& content, std::string_view id) {
  const auto files = files_of(content);
  std::vector<Append> parts{[&](std::string& to) { append_readable(to, content, files, id); }};
  for (const auto* file : files.offered) {
    // A program that acts upon the alternative would do so again upon a file of its type.
    const auto* const type = file == files.invitation ? invitation_file_type : file->content_type.c_str();
    parts.emplace_back([file, type](std::string& to) { append_attachment(to, *file, "attachment", type); });
  }
  if (parts.size() == 1) return parts.front()(out);
  append_multipart(out, "mixed", make_boundary(id, " mixed"), parts);
}

}  // namespace mailroom::mail
