// The certificate of the service, and TLS sessions with it.
#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"

struct ssl_ctx_st;  // of OpenSSL
struct ssl_st;

namespace mailroom::submission {

/// In PEM.
struct TlsFiles {
  std::string certificate{};  ///< with those above it
  std::string key{};
  bool allows_readable_key = false;
};

class TlsServer {
 public:
  /// Throws as load().
  explicit TlsServer(const TlsFiles& files) { load(files); }
  /// Reads the files for the sessions to come. Throws Error(configuration) if they cannot be used, and goes
  /// on with those before.
  void load(const TlsFiles& files);
  /// When the certificate ends.
  Moment valid_until() const;
  /// For one client; the caller owns it. Null if OpenSSL refuses.
  ssl_st* session() const;

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

}  // namespace mailroom::submission
