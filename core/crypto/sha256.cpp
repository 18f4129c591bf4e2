// OpenSSL's EVP_MD over the parts one after the other, which are never joined.

#include "crypto/sha256.hpp"

#include <openssl/evp.h>

#include "crypto/openssl_error.hpp"

namespace mailroom {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

Digest sha256(std::initializer_list<std::string_view> parts) {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  Digest digest;
  bool done = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (const auto part : parts)
    done = done && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  done = done && EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  if (!done) throw_openssl_error("digest a message");
  return digest;
}

}  // namespace mailroom
