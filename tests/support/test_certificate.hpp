#pragma once

#include <string>

#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// A self-signed certificate and its key, for one test. As a CA file it makes itself trusted.
class TestCertificate {
 public:
  struct Options {
    std::string names = "DNS:localhost,IP:127.0.0.1";  ///< subjectAltName
    /// Certificates that are trusted together need different ones: an issuer is found by its subject.
    std::string subject = "test relay";
    long valid_from = -3600;  ///< seconds from now
    long valid_until = 3600;
  };

  explicit TestCertificate(const Options& options);
  TestCertificate() : TestCertificate(Options{}) {}

  const std::string& certificate() const { return certificate_; }
  const std::string& key() const { return key_; }

 private:
  TemporaryDirectory directory_;
  std::string certificate_;
  std::string key_;
};

}  // namespace mailroom::test
