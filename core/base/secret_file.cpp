// Prefers systemd's credentials, waits for a pipe but not for ever, and wipes what it has read.

#include "base/secret_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom {
namespace {

class OpenSecret {
 public:
  /// Opens without blocking: opening a FIFO without a writer would block forever.
  OpenSecret(const std::string& path, const SecretKind& kind)
      : path_(path), kind_(kind), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (fd_ < 0) throw_unreadable();
  }
  ~OpenSecret() { close(fd_); }
  OpenSecret(const OpenSecret&) = delete;
  OpenSecret& operator=(const OpenSecret&) = delete;

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

  std::size_t read_into(char* buffer, std::size_t room) const {
    std::size_t size = 0;
    while (size < room) {
      const auto count = read(fd_, buffer + size, room - size);
      if (count == 0) return size;
      if (count > 0) {
        size += static_cast<std::size_t>(count);
      } else if (errno == EAGAIN) {
        wait_for_writer();
      } else if (errno != EINTR) {
        throw_unreadable();
      }
    }
    throw Error(ExitCode::configuration,
                fmt::format("the {0} file {1} contains more than a {0}", kind_.secret, path_),
                std::string(kind_.content));
  }

 private:
  [[noreturn]] void throw_unreadable() const {
    throw Error(ExitCode::configuration,
                fmt::format("cannot read the {} file {}: {}", kind_.secret, path_, std::strerror(errno)),
                fmt::format("it is set by {}, and this user must be able to read it", kind_.named_by));
  }

  /// Waits for the writer of a pipe, as in --key-file <(command).
  void wait_for_writer() const {
    constexpr int patience_ms = 10'000;
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, patience_ms) != 0) return;
    throw Error(
        ExitCode::configuration,
        fmt::format("the {} file {} is a pipe, and nothing was written to it in 10 s", kind_.secret, path_));
  }

  const std::string& path_;
  const SecretKind& kind_;
  int fd_;
};

void check_mode(unsigned mode, const std::string& path, const SecretKind& kind, bool allow_readable) {
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(
        ExitCode::configuration,
        fmt::format("others can replace the {} in the file {} (mode {:04o})", kind.secret, path, mode),
        "chmod go-w " + path);
  }
  if ((mode & S_IROTH) == 0 || allow_readable) return;
  const auto allowed = kind.allowed_by.empty() ? "" : fmt::format(", or set {}", kind.allowed_by);
  throw Error(ExitCode::configuration,
              fmt::format("everyone can read the {} file {} (mode {:04o})", kind.secret, path, mode),
              fmt::format("chmod 640 {}{}", path, allowed));
}

}  // namespace

std::string secret_path(const std::string& path) {
  const char* directory = std::getenv("CREDENTIALS_DIRECTORY");
  if (directory == nullptr || *directory == '\0') return path;
  const auto name = path.substr(path.rfind('/') + 1);
  for (const std::string prefix : {"", "mailroom_"}) {
    const auto credential = fmt::format("{}/{}{}", directory, prefix, name);
    struct stat status {};
    if (!name.empty() && stat(credential.c_str(), &status) == 0) return credential;
  }
  return path;
}

SecretFile::SecretFile(const std::string& named, const SecretKind& kind, bool allow_readable) {
  const auto path = secret_path(named);
  const OpenSecret file(path, kind);
  check_mode(file.mode(), path, kind, allow_readable);
  try {
    size_ = file.read_into(buffer_.data(), buffer_.size());
  } catch (...) {
    explicit_bzero(buffer_.data(), buffer_.size());
    throw;
  }
}

SecretFile::~SecretFile() {
  explicit_bzero(buffer_.data(), buffer_.size());
}

std::string_view SecretFile::text() const {
  std::string_view text{buffer_.data(), size_};
  if (text.ends_with('\n')) text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
  return text;
}

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
