// A certificate that a host makes for itself, until it has one that clients know.
#pragma once

#include <string>

namespace mailroom::submission {

/// In PEM.
struct OwnCertificate {
  std::string certificate{};
  std::string key{};
};

/// For `host` and for the names of the loopback interface, from now on for ten years. Throws Error(failed).
OwnCertificate make_certificate(const std::string& host);

}  // namespace mailroom::submission
