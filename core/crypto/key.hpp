#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mailroom {

constexpr std::size_t key_size = 32;

/// A signing key: 32 bytes, written as 64 hexadecimal digits. Its bytes are wiped when it goes.
class Key {
 public:
  /// `source` names where the text comes from, for messages that never show it.
  /// Throws Error with ExitCode::configuration, saying how many digits there are or that one is none.
  static Key from_hex(std::string_view hex, std::string_view source);

  /// Reads a file of 64 hexadecimal digits and at most one line end. Throws Error with
  /// ExitCode::configuration when it is missing, unreadable or malformed, or when everyone may read it and
  /// `allow_readable` is false. A link is judged by the file it leads to. Of a pipe the text is awaited for
  /// 10 s at the most. `named_by` is the setting that names the file, for the hint when it cannot be read.
  static Key from_file(const std::string& path, bool allow_readable,
                       const std::string& named_by = "signing.key_file or MAILROOM_SECRET_KEY_FILE");

  ~Key();
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;

  const std::array<std::uint8_t, key_size>& bytes() const { return bytes_; }

  /// The first 16 hexadecimal digits of the key's SHA-256: names the key without giving it away.
  std::string fingerprint() const;

 private:
  Key() = default;
  std::array<std::uint8_t, key_size> bytes_{};
};

}  // namespace mailroom
