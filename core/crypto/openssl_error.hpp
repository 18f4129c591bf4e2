// Turns a failure of OpenSSL into the error that ends the command.
#pragma once

#include <array>
#include <openssl/err.h>
#include <string>

#include "base/error.hpp"

namespace mailroom {

/// Throws Error(failed) with `attempt` and OpenSSL's reason. Private to this directory.
[[noreturn]] inline void throw_openssl_error(const std::string& attempt) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  throw Error(ExitCode::failed, "OpenSSL cannot " + attempt + ": " + reason.data());
}

}  // namespace mailroom
