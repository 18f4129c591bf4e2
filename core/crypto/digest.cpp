// OpenSSL's EVP_MD over the parts one after the other, which are never joined.

#include "crypto/digest.hpp"

#include <array>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/encoded_text.hpp"

namespace mailroom::crypto {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

struct FreeAlgorithm {
  void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
};

/// Looked up once: EVP_sha256() has OpenSSL look for it at each use.
const EVP_MD* sha256_algorithm() {
  static const std::unique_ptr<EVP_MD, FreeAlgorithm> algorithm(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  return algorithm.get();
}

}  // namespace

Digest sha256(std::initializer_list<std::string_view> parts) {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  Digest digest;
  const auto* const algorithm = sha256_algorithm();
  bool done = context && algorithm && EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1;
  for (const auto part : parts)
    done = done && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  done = done && EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  if (!done) throw_openssl_error("digest a message");
  return digest;
}

std::string hmac_md5(std::string_view key, std::string_view message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const auto* const bytes = static_cast<const unsigned char*>(static_cast<const void*>(message.data()));
  if (HMAC(EVP_md5(), key.data(), static_cast<int>(key.size()), bytes, message.size(), digest.data(),
           &size) == nullptr) {
    throw_openssl_error("provide HMAC-MD5");
  }
  return hex_text(std::span(digest).first(size));
}

}  // namespace mailroom::crypto
