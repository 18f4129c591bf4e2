// Addresses and messages come from applications: what could end a command, or the message, is refused here.

#include "carriers/smtp/session/envelope.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::smtp {
namespace {

/// RFC 5321, section 4.5.3.1.3: a path has 256 bytes, with its angle brackets.
constexpr std::size_t longest_path = 254;

/// RFC 5321, section 2.3.8: CR and LF occur together only. True if every CR of `message` is followed by LF,
/// and every LF preceded by CR.
bool has_crlf_only(std::string_view message) {
  while (true) {
    const auto line_end = message.find('\n');
    const auto cr = message.substr(0, line_end).find('\r');
    if (line_end == std::string_view::npos) return cr == std::string_view::npos;
    if (cr == std::string_view::npos || cr + 1 != line_end) return false;
    message.remove_prefix(line_end + 1);
  }
}

/// True for a local part without what could end it or the command; also for a quoted one with blanks, and
/// with quotes and backslashes that are themselves quoted.
bool is_safe_local(std::string_view local) {
  if (local.find_first_of("<>") != std::string_view::npos) return false;
  if (!local.starts_with('"')) return local.find_first_of(" \"\\@") == std::string_view::npos;
  if (local.size() < 3 || !local.ends_with('"')) return false;
  const auto text = local.substr(1, local.size() - 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || (text[i] == '\\' && ++i == text.size())) return false;
  }
  return true;
}

std::string mail_command(const delivery::Envelope& mail, bool with_id) {
  // RFC 3461, sections 4.3 and 4.4: of a bounce the header suffices, and the id comes back with it.
  const bool has_id = with_id && !mail.id.empty();
  return fmt::format("MAIL FROM:<{}>{}{}{}", mail.from, mail.needs_8bit ? " BODY=8BITMIME" : "",
                     mail.needs_smtputf8 ? " SMTPUTF8" : "", has_id ? " RET=HDRS ENVID=" + mail.id : "");
}

}  // namespace

bool is_envelope_address(std::string_view address, bool allow_utf8) {
  const auto at = address.rfind('@');
  if (at == 0 || at == std::string_view::npos || at + 1 == address.size()) return false;
  const auto domain = address.substr(at + 1);
  if (address.size() > longest_path || !is_safe_local(address.substr(0, at))) return false;
  if (!is_ascii(allow_utf8 ? domain : address)) return false;
  return is_printable(address) && domain.find_first_of(" <>\"\\") == std::string_view::npos;
}

bool has_safe_addresses(const delivery::Envelope& mail) {
  const auto is_safe = [&](std::string_view address) {
    return is_envelope_address(address, mail.needs_smtputf8);
  };
  return (mail.from.empty() || is_safe(mail.from)) && is_safe(mail.to);
}

bool is_transmittable(std::string_view message) {
  return message.find('\0') == std::string_view::npos && has_crlf_only(message);
}

std::string request_of(SmtpStep step, const delivery::Envelope& mail, bool with_id) {
  if (step == SmtpStep::mail) return mail_command(mail, with_id) + "\r\n";
  if (step == SmtpStep::rcpt) return fmt::format("RCPT TO:<{}>\r\n", mail.to);
  return fmt::format("{}\r\n", form_of(step).verb);
}

std::string with_header(const std::string& header, std::string_view message) {
  constexpr std::string_view line_end = "\r\n";
  const auto name = lower_case(header.substr(0, header.find(':') + 1));
  const auto head = message.substr(0, message.find("\r\n\r\n"));
  if (lower_case(head.substr(0, name.size())) == name ||
      holds_in_any_case(head, std::string(line_end).append(name)))
    return std::string(message);
  return std::string(header).append(line_end).append(message);
}

std::string stuffed(std::string_view message) {
  constexpr std::string_view line_end = "\r\n";
  constexpr std::string_view dotted_line = "\r\n.";
  // RFC 5321, section 4.5.2: a line that begins with a dot gets another one.
  std::string bytes;
  bytes.reserve(message.size() + message.size() / 64 + 16);
  if (message.starts_with('.')) bytes += '.';
  for (auto at = message.find(dotted_line); at != std::string_view::npos; at = message.find(dotted_line)) {
    bytes.append(message.substr(0, at + dotted_line.size())) += '.';
    message.remove_prefix(at + dotted_line.size());
  }
  bytes += message;
  if (!bytes.empty() && !bytes.ends_with(line_end)) bytes += line_end;
  return bytes += ".\r\n";
}

std::string as_chunk(std::string_view message) {
  // RFC 3030, section 2: the octets as they are; a mail ends with a line end all the same.
  const std::string_view end = message.empty() || message.ends_with("\r\n") ? "" : "\r\n";
  return fmt::format("BDAT {} LAST\r\n{}{}", message.size() + end.size(), message, end);
}

}  // namespace mailroom::smtp
