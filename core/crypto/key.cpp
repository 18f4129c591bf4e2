#include "crypto/key.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/key_text.hpp"
#include "crypto/openssl_error.hpp"

namespace mailroom {
namespace {

/// The text of a key file, in a fixed buffer, so that no copies remain in memory; wiped on destruction.
struct KeyText {
  std::array<char, 4096> buffer{};
  std::size_t size = 0;

  KeyText() = default;
  ~KeyText() { OPENSSL_cleanse(buffer.data(), buffer.size()); }
  KeyText(const KeyText&) = delete;
  KeyText& operator=(const KeyText&) = delete;
};

class File {
 public:
  /// Opens without blocking: opening a FIFO without a writer would block forever.
  File(const std::string& path, const std::string& named_by)
      : path_(path),
        named_by_(named_by),
        fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (fd_ < 0) throw_unreadable();
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// The permission bits.
  unsigned mode() const {
    struct stat status {};
    if (fstat(fd_, &status) != 0) throw_unreadable();
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      throw_unreadable();
    }
    return status.st_mode & 0777U;
  }

  void read_into(KeyText& text) const {
    while (text.size < text.buffer.size()) {
      const auto count = read(fd_, text.buffer.data() + text.size, text.buffer.size() - text.size);
      if (count == 0) return;
      if (count > 0) {
        text.size += static_cast<std::size_t>(count);
      } else if (errno == EAGAIN) {
        wait_for_writer();
      } else if (errno != EINTR) {
        throw_unreadable();
      }
    }
    throw Error(ExitCode::configuration, fmt::format("the key file {} contains more than a key", path_),
                "make one with: openssl rand -hex 32");
  }

 private:
  [[noreturn]] void throw_unreadable() const {
    throw Error(ExitCode::configuration,
                fmt::format("cannot read the key file {}: {}", path_, std::strerror(errno)),
                "it is set by " + named_by_ + ", and this user must be able to read it");
  }

  /// Waits for the writer of a pipe, as in --key-file <(command).
  void wait_for_writer() const {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, patience_ms) != 0) return;
    throw Error(ExitCode::configuration,
                fmt::format("the key file {} is a pipe, and nothing was written to it in 10 s", path_));
  }

  static constexpr int patience_ms = 10'000;
  const std::string& path_;
  const std::string& named_by_;
  int fd_;
};

int hex_value(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

}  // namespace

Key Key::from_hex(std::string_view hex, std::string_view source) {
  require_key_text(hex, source);
  Key key;
  for (std::size_t i = 0; i < key_size; ++i) {
    key.bytes_[i] = static_cast<std::uint8_t>(hex_value(hex[2 * i]) * 16 + hex_value(hex[2 * i + 1]));
  }
  return key;
}

Key Key::from_file(const std::string& path, bool allow_readable, const std::string& named_by) {
  const File file(path, named_by);
  const unsigned mode = file.mode();
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ExitCode::configuration,
                fmt::format("others can replace the key in the file {} (mode {:04o})", path, mode),
                "chmod go-w " + path);
  }
  if ((mode & S_IROTH) != 0 && !allow_readable) {
    throw Error(ExitCode::configuration,
                fmt::format("everyone can read the key file {} (mode {:04o})", path, mode),
                fmt::format("chmod 640 {}, or set signing.allow_readable_key: true", path));
  }
  KeyText text;
  file.read_into(text);
  return from_hex(without_line_end({text.buffer.data(), text.size}), path);
}

Key::~Key() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

std::string Key::fingerprint() const {
  std::array<std::uint8_t, 32> hash{};
  if (EVP_Q_digest(nullptr, "SHA256", nullptr, bytes_.data(), bytes_.size(), hash.data(), nullptr) != 1) {
    throw_openssl_error("fingerprint a key");
  }
  std::string text;
  for (std::size_t i = 0; i < 8; ++i)
    text += fmt::format("{:02x}", hash[i]);
  return text;
}

}  // namespace mailroom
