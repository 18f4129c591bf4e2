// TLS 1.2 and later (RFC 8314, section 4.1). An idle session keeps no buffers: 1,000 of them would take 34
// MB.

#include "submission/tls_server.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/error.hpp"
#include "base/secret_file.hpp"

namespace mailroom::submission {
namespace {

[[noreturn]] void refuse_file(const std::string& file) {
  char words[256];
  ERR_error_string_n(ERR_get_error(), words, sizeof words);
  ERR_clear_error();
  throw Error(
      ExitCode::configuration, fmt::format("cannot use {} for TLS: {}", file, words),
      "submission.certificate and submission.key name PEM files of one pair, which this user can read");
}

void use_key(ssl_ctx_st& context, const TlsFiles& files) {
  const SecretFile file(files.key,
                        {.secret = "private key",
                         .named_by = "submission.key",
                         .allowed_by = "signing.allow_readable_key",
                         .content = "the private key of submission.certificate, in PEM"},
                        files.allows_readable_key);
  const auto text = file.text();
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(
          bytes.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr),
      EVP_PKEY_free);
  if (!key || SSL_CTX_use_PrivateKey(&context, key.get()) != 1 || SSL_CTX_check_private_key(&context) != 1)
    refuse_file(files.key);
}

}  // namespace

void TlsServer::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

void TlsServer::load(const TlsFiles& files) {
  decltype(context_) fresh(SSL_CTX_new(TLS_server_method()));
  if (!fresh) throw Error(ExitCode::failed, "cannot set TLS up");
  SSL_CTX_set_min_proto_version(fresh.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(fresh.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(fresh.get(), SSL_OP_NO_RENEGOTIATION);
  const auto certificate = secret_path(files.certificate);
  if (SSL_CTX_use_certificate_chain_file(fresh.get(), certificate.c_str()) != 1)
    refuse_file(files.certificate);
  use_key(*fresh, files);
  context_ = std::move(fresh);
}

Moment TlsServer::valid_until() const {
  tm end{};
  ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context_.get())), &end);
  return Moment(std::chrono::seconds(timegm(&end)));
}

ssl_st* TlsServer::session() const {
  return SSL_new(context_.get());
}

}  // namespace mailroom::submission
