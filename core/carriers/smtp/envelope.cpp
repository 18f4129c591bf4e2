// Checks characters and lengths, without parsing the address again.

#include "carriers/smtp/envelope.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace mailroom {
namespace {

constexpr std::size_t longest_address = 254;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// True if every CR of `message` is followed by LF, and every LF preceded by CR.
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

}  // namespace

bool is_envelope_address(std::string_view address, bool allow_utf8) {
  const auto at = address.rfind('@');
  if (at == 0 || at == std::string_view::npos || at + 1 == address.size()) return false;
  const auto domain = address.substr(at + 1);
  if (address.size() > longest_address || !is_safe_local(address.substr(0, at))) return false;
  if (!is_ascii(allow_utf8 ? domain : address)) return false;
  return is_printable(address) && domain.find_first_of(" <>\"\\") == std::string_view::npos;
}

bool is_transmittable(std::string_view message) {
  return message.find('\0') == std::string_view::npos && has_crlf_only(message);
}

}  // namespace mailroom
