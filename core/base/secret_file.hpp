// Reads the file of a key, a password or an access token, and refuses one that others can read or replace.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mailroom {

/// Reads a password: the one line of the file. Throws Error(configuration) as SecretFile does,
/// and if the line is empty or has control characters. `named_by` is the setting that names the file.
std::string read_password_file(const std::string& path, bool allow_readable, const std::string& named_by);

/// Reads what must stay as secret as a password, as it is: an access token. Throws Error(configuration) as
/// SecretFile does.
std::string read_token_file(const std::string& path, bool allow_readable);

/// How messages about the file of a secret name it.
struct SecretKind {
  std::string_view secret;      ///< `key`
  std::string_view named_by;    ///< the setting that names the file
  std::string_view allowed_by;  ///< what accepts a file that everyone can read; empty if nothing does
  std::string_view content;     ///< a hint: what the file must contain
};

/// The file that a secret is read from: the copy of `path` that the service manager has made for this
/// service, if there is one, a credential of the same name, or of that name after `mailroom_`, in
/// $CREDENTIALS_DIRECTORY; otherwise `path`.
std::string secret_path(const std::string& path);

/// The text of a file that holds one secret. It stays in a fixed buffer, so that no copy remains in memory;
/// the destructor wipes it.
class SecretFile {
 public:
  static constexpr std::size_t max_size = 4095;

  /// Reads secret_path(path). Throws Error(configuration) if it is missing, unreadable or larger than
  /// max_size, if group or others may write it, or if everyone may read it and `allow_readable` is false.
  /// Follows links. Waits at most 10 s at a time for the text of a pipe.
  SecretFile(const std::string& path, const SecretKind& kind, bool allow_readable);
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  /// The text without one line end.
  std::string_view text() const;

 private:
  std::array<char, max_size + 1> buffer_{};
  std::size_t size_ = 0;
};

}  // namespace mailroom
