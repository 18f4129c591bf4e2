// Decodes the digits straight from the buffer of a file, and hashes the key for its fingerprint.

#include "crypto/key.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "base/secret_text.hpp"
#include "crypto/digest.hpp"

namespace mailroom::crypto {
Key Key::from_hex(std::string_view hex, std::string_view source) {
  require_key_text(hex, source);
  Key key;
  for (std::size_t i = 0; i < key_size; ++i) {
    key.bytes_[i] = static_cast<std::uint8_t>(hex_value(hex[2 * i]) * 16 + hex_value(hex[2 * i + 1]));
  }
  return key;
}

Key Key::from_file(const std::string& path, bool allow_readable, const std::string& named_by) {
  const SecretKind kind{"key", named_by, "signing.allow_readable_key: true", how_to_make_key};
  return from_hex(SecretFile(path, kind, allow_readable).text(), path);
}

Key::~Key() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

std::string Key::fingerprint() const {
  std::array<std::uint8_t, 32> hash{};
  if (EVP_Q_digest(nullptr, "SHA256", nullptr, bytes_.data(), bytes_.size(), hash.data(), nullptr) != 1) {
    throw_openssl_error("fingerprint a key");
  }
  return hex_text(std::span(hash).first(8));
}

}  // namespace mailroom::crypto
