// Says what a password may be, after SecretFile has checked and read the file.

#include "base/password_file.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"

namespace mailroom {

std::string read_password_file(const std::string& path, bool allow_readable, const std::string& named_by) {
  constexpr auto content = "it must have one line, the password";
  const SecretFile file(path, {"password", named_by, "", content}, allow_readable);
  if (file.text().empty()) {
    throw Error(ExitCode::configuration, fmt::format("the password file {} is empty", path), content);
  }
  if (!is_printable(file.text())) {
    throw Error(ExitCode::configuration,
                fmt::format("the password in the file {} has control characters or is not UTF-8", path),
                content);
  }
  return std::string(file.text());
}

std::string read_token_file(const std::string& path, bool allow_readable) {
  constexpr auto content = "it must have one line, the access token";
  return std::string(SecretFile(path, {"token", "send.token_file", "", content}, allow_readable).text());
}

}  // namespace mailroom
