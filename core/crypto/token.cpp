// Puts secret and HMAC into one text, and finds a code by trying all of them.

#include "crypto/token.hpp"

#include <algorithm>
#include <span>

#include "crypto/base64.hpp"

namespace mailroom::crypto {
namespace {

constexpr std::size_t signed_size = secret_size + digest_size;
static_assert(base64url_length(signed_size) == token_size);
static_assert(base64url_length(secret_size) == secret_text_size);

constexpr int code_count = 100'000;

std::string_view text_of(const Secret& secret) {
  return {static_cast<const char*>(static_cast<const void*>(secret.data())), secret.size()};
}

Digest signature_of(Hmac& hmac, std::string_view path, const Secret& secret, std::string_view code) {
  return hmac.digest({path, text_of(secret), code});
}

/// Writes `number` into `code`, with leading zeros.
void write_code(int number, std::span<char> code) {
  for (auto digit = code.rbegin(); digit != code.rend(); ++digit, number /= 10) {
    *digit = static_cast<char>('0' + number % 10);
  }
}

}  // namespace

TokenText sign_token(Hmac& hmac, std::string_view path, const Secret& secret, std::string_view code) {
  const Digest signature = signature_of(hmac, path, secret, code);
  std::array<std::uint8_t, signed_size> bytes;
  std::copy(signature.begin(), signature.end(), std::copy(secret.begin(), secret.end(), bytes.begin()));
  TokenText text;
  encode_base64url(bytes, text);
  return text;
}

std::optional<DecodedToken> decode_token(std::string_view text) {
  std::array<std::uint8_t, signed_size> bytes;
  if (!decode_base64url(text, bytes)) return std::nullopt;
  DecodedToken token;
  std::copy_n(bytes.begin(), secret_size, token.secret.begin());
  std::copy_n(bytes.begin() + secret_size, digest_size, token.signature.begin());
  return token;
}

bool is_signed(Hmac& hmac, const DecodedToken& token, std::string_view path, std::string_view code) {
  return equal_in_constant_time(signature_of(hmac, path, token.secret, code), token.signature);
}

std::optional<std::string> find_code(Hmac& hmac, const DecodedToken& token, std::string_view path) {
  std::array<char, code_size> code;
  for (int number = 0; number < code_count; ++number) {
    write_code(number, code);
    const std::string_view text(code.data(), code.size());
    if (is_signed(hmac, token, path, text)) return std::string(text);
  }
  return std::nullopt;
}

}  // namespace mailroom::crypto
