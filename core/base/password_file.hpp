// Passwords and access tokens that the configuration keeps in files of their own.
#pragma once

#include <string>

namespace mailroom {

/// Reads a password: the one line of the file. Throws Error(configuration) as SecretFile does,
/// and if the line is empty or has control characters. `named_by` is the setting that names the file.
std::string read_password_file(const std::string& path, bool allow_readable, const std::string& named_by);

/// Reads what must stay as secret as a password, as it is: an access token. Throws Error(configuration) as
/// SecretFile does.
std::string read_token_file(const std::string& path, bool allow_readable);

}  // namespace mailroom
