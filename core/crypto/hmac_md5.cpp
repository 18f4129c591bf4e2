// OpenSSL's HMAC() in one call, since each login needs it once.

#include "crypto/hmac_md5.hpp"

#include <array>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "crypto/openssl_error.hpp"

namespace mailroom {

std::string hmac_md5(std::string_view key, std::string_view message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const auto* const bytes = static_cast<const unsigned char*>(static_cast<const void*>(message.data()));
  if (HMAC(EVP_md5(), key.data(), static_cast<int>(key.size()), bytes, message.size(), digest.data(),
           &size) == nullptr) {
    throw_openssl_error("provide HMAC-MD5");
  }
  std::string text;
  for (unsigned i = 0; i < size; ++i)
    text += fmt::format("{:02x}", digest.at(i));
  return text;
}

}  // namespace mailroom
