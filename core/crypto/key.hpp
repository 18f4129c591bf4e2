// The signing key in memory: where it comes from, and how it is named without being shown.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mailroom::crypto {

constexpr std::size_t key_size = 32;

/// A signing key: 32 bytes, written as 64 hexadecimal digits. The destructor wipes the bytes.
class Key {
 public:
  /// `source` names the origin of the text for error messages, which never show the text itself. Throws
  /// Error(configuration) if `hex` has the wrong length or a character that is not a hexadecimal digit.
  static Key from_hex(std::string_view hex, std::string_view source);

  /// Reads a file of 64 hexadecimal digits and at most one newline. Throws Error(configuration) if it is
  /// missing, unreadable or malformed, if group or others may write it, or if everyone may read it and
  /// `allow_readable` is false. Follows links. Waits at most 10 s at a time for the text of a pipe.
  /// `named_by` is the setting that names the file, for the hint when it cannot be read.
  static Key from_file(const std::string& path, bool allow_readable,
                       const std::string& named_by = "signing.key_file or MAILROOM_SECRET_KEY_FILE");

  ~Key();
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;

  const std::array<std::uint8_t, key_size>& bytes() const { return bytes_; }

  /// The first 16 hexadecimal digits of the key's SHA-256: identifies the key without revealing it.
  std::string fingerprint() const;

 private:
  Key() = default;
  std::array<std::uint8_t, key_size> bytes_{};
};

}  // namespace mailroom::crypto
