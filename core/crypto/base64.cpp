// Translates to the URL-safe alphabet and back, so that there is one decoder for both.

#include "crypto/base64.hpp"

#include <algorithm>

#include "crypto/base64url.hpp"

namespace mailroom {

std::string base64(std::span<const std::uint8_t> bytes) {
  std::string text(base64url_length(bytes.size()), '\0');
  encode_base64url(bytes, text);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.resize((bytes.size() + 2) / 3 * 4, '=');
  return text;
}

std::optional<std::vector<std::uint8_t>> decoded_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.find_first_of("-_") != std::string_view::npos) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding)
    text.remove_suffix(1);
  std::string url(text);
  std::replace(url.begin(), url.end(), '+', '-');
  std::replace(url.begin(), url.end(), '/', '_');
  std::vector<std::uint8_t> bytes(url.size() * 3 / 4);
  if (!decode_base64url(url, bytes)) return std::nullopt;
  return bytes;
}

}  // namespace mailroom
