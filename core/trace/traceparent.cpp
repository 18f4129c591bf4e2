// Accepts what the standard makes every reader accept, and nothing else: the text comes from applications.

#include "trace/traceparent.hpp"

#include <algorithm>

namespace mailroom::trace {
namespace {

constexpr std::size_t known_size = 55;

/// -1 for what is no lower-case hexadecimal digit.
int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

template <typename Bytes>
bool read_hex(std::string_view text, Bytes& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

template <typename Bytes>
bool is_zero(const Bytes& bytes) {
  return std::ranges::all_of(bytes, [](auto byte) { return byte == 0; });
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  if (text.size() < known_size || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  TraceParent parent;
  const bool is_hex = read_hex(text, version) && read_hex(text.substr(3), parent.trace) &&
                      read_hex(text.substr(36), parent.span) && read_hex(text.substr(53), flags);
  if (!is_hex || version[0] == 0xff || is_zero(parent.trace) || is_zero(parent.span)) return std::nullopt;
  const bool has_more = text.size() > known_size;
  if (has_more && (version[0] == 0 || text[known_size] != '-')) return std::nullopt;
  parent.is_sampled = (flags[0] & 1U) != 0;
  return parent;
}

}  // namespace mailroom::trace
