// A key of P-256, which every client of TLS 1.2 takes.

#include "submission/own_certificate.hpp"

#include <array>
#include <fmt/format.h>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/error.hpp"

namespace mailroom::submission {
namespace {

constexpr long validity = 10L * 365 * 24 * 60 * 60;

void require_made(bool is_made) {
  if (!is_made) throw Error(ExitCode::failed, "OpenSSL makes no certificate");
}

void add_extension(X509& certificate, int kind, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()), X509_EXTENSION_free);
  require_made(extension && X509_add_ext(&certificate, extension.get(), -1) == 1);
}

using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string text_of(BIO* memory) {
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(memory, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

void describe(X509& certificate, const std::string& host) {
  require_made(X509_set_version(&certificate, 2) == 1);
  std::array<unsigned char, 8> serial{};
  require_made(RAND_bytes(serial.data(), static_cast<int>(serial.size())) == 1);
  serial.front() &= 0x7f;
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr), BN_free);
  require_made(number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr);
  X509_gmtime_adj(X509_getm_notBefore(&certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(&certificate), validity);
  auto* const name = X509_get_subject_name(&certificate);
  const std::string common = host.substr(0, 64);
  require_made(
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 static_cast<const unsigned char*>(static_cast<const void*>(common.c_str())),
                                 -1, -1, 0) == 1 &&
      X509_set_issuer_name(&certificate, name) == 1);
  add_extension(certificate, NID_subject_alt_name,
                fmt::format("DNS:{}, DNS:localhost, IP:127.0.0.1, IP:::1", host));
  add_extension(certificate, NID_basic_constraints, "critical, CA:TRUE");
}

}  // namespace

OwnCertificate make_certificate(const std::string& host) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  require_made(key && certificate);
  describe(*certificate, host);
  require_made(X509_set_pubkey(certificate.get(), key.get()) == 1 &&
               X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  const Memory certificate_text(BIO_new(BIO_s_mem()), BIO_free);
  const Memory key_text(BIO_new(BIO_s_secmem()), BIO_free);
  require_made(
      certificate_text && key_text && PEM_write_bio_X509(certificate_text.get(), certificate.get()) == 1 &&
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return {.certificate = text_of(certificate_text.get()), .key = text_of(key_text.get())};
}

}  // namespace mailroom::submission
