// Reads the certificate anew for each signature: there are few, and nothing is kept between them.

#include "crypto/certificate.hpp"

#include <array>
#include <memory>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace mailroom::crypto {
namespace {

template <auto free>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};

using Bio = std::unique_ptr<BIO, FreeBy<BIO_free>>;
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using PublicKey = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeBy<EVP_MD_CTX_free>>;

PublicKey key_of(std::string_view certificate) {
  const Bio bio(BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size())));
  if (!bio) return nullptr;
  const Certificate parsed(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  PublicKey key(parsed ? X509_get_pubkey(parsed.get()) : nullptr);
  return key && EVP_PKEY_base_id(key.get()) == EVP_PKEY_RSA ? std::move(key) : nullptr;
}

PublicKey p256_key_of(std::span<const std::uint8_t> der) {
  constexpr std::size_t longest = 1024;
  const auto* bytes = der.data();
  if (der.size() > longest) return nullptr;
  PublicKey key(d2i_PUBKEY(nullptr, &bytes, static_cast<long>(der.size())));
  if (!key || EVP_PKEY_base_id(key.get()) != EVP_PKEY_EC) return nullptr;
  std::array<char, 64> group{};
  std::size_t size = 0;
  const bool has_group = EVP_PKEY_get_group_name(key.get(), group.data(), group.size(), &size) == 1;
  return has_group && std::string_view(group.data(), size) == "prime256v1" ? std::move(key) : nullptr;
}

bool verifies(EVP_PKEY* key, std::string_view text, std::span<const std::uint8_t> signature,
              const EVP_MD* digest) {
  const DigestContext context(EVP_MD_CTX_new());
  if (!context || EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) != 1) return false;
  const auto* const bytes = static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
  return EVP_DigestVerify(context.get(), signature.data(), signature.size(), bytes, text.size()) == 1;
}

}  // namespace

bool is_signed_by_certificate(std::string_view certificate, std::string_view text,
                              std::span<const std::uint8_t> signature, SignedDigest digest) {
  constexpr std::size_t longest = std::size_t{1} << 20;
  const auto key = certificate.size() <= longest ? key_of(certificate) : nullptr;
  const auto* const kind = digest == SignedDigest::sha1 ? EVP_sha1() : EVP_sha256();
  const bool is_signed = key && verifies(key.get(), text, signature, kind);
  ERR_clear_error();
  return is_signed;
}

bool is_p256_key(std::span<const std::uint8_t> der) {
  const bool is_key = p256_key_of(der) != nullptr;
  ERR_clear_error();
  return is_key;
}

bool is_signed_by_p256_key(std::span<const std::uint8_t> der, std::string_view text,
                           std::span<const std::uint8_t> signature) {
  const auto key = p256_key_of(der);
  const bool is_signed = key && verifies(key.get(), text, signature, EVP_sha256());
  ERR_clear_error();
  return is_signed;
}

}  // namespace mailroom::crypto
