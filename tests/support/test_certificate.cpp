#include "support/test_certificate.hpp"

#include <cstdio>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <vector>

namespace mailroom::test {
namespace {

template <typename T, typename Free>
std::unique_ptr<T, Free> owned(T* object, Free free) {
  if (object == nullptr) throw std::runtime_error("OpenSSL cannot make a certificate");
  return {object, free};
}

void require(int result) {
  if (result <= 0) throw std::runtime_error("OpenSSL cannot make a certificate");
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  const auto extension =
      owned(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()), X509_EXTENSION_free);
  require(X509_add_ext(certificate, extension.get(), -1));
}

template <typename Write>
void write_pem(const std::string& path, Write write) {
  const auto file = owned(std::fopen(path.c_str(), "w"), std::fclose);
  require(write(file.get()));
}

}  // namespace

TestCertificate::TestCertificate(const Options& options)
    : certificate_(directory_.path() / "certificate.pem"), key_(directory_.path() / "key.pem") {
  const auto key = owned(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), EVP_PKEY_free);
  const auto made = owned(X509_new(), X509_free);
  require(X509_set_version(made.get(), X509_VERSION_3));
  require(ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1));
  X509_gmtime_adj(X509_getm_notBefore(made.get()), options.valid_from);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), options.valid_until);
  require(X509_set_pubkey(made.get(), key.get()));
  const std::vector<unsigned char> name(options.subject.begin(), options.subject.end());
  auto* const subject = X509_get_subject_name(made.get());
  require(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, name.data(), static_cast<int>(name.size()),
                                     -1, 0));
  require(X509_set_issuer_name(made.get(), subject));
  add_extension(made.get(), NID_subject_alt_name, options.names);
  require(X509_sign(made.get(), key.get(), EVP_sha256()));
  write_pem(certificate_, [&](std::FILE* file) { return PEM_write_X509(file, made.get()); });
  write_pem(key_, [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace mailroom::test
