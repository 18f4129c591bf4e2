// Writes mails into a maildir, so that a crash leaves none that is incomplete: a mail is whole in `tmp`
// before it gets its name in `new`.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "base/actor.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "carriers/capture/carrier.hpp"

namespace mailroom::capture {
namespace {

/// As the name of a file may have it.
std::string host_for_names() {
  auto host = host_name();
  std::replace_if(
      host.begin(), host.end(), [](char c) { return c == '/' || c == ':'; }, '_');
  return host;
}

/// Of all mails of this process.
std::atomic<std::uint64_t> mails_written{0};

class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail();
  }
  ~NewFile() {
    if (fd_ >= 0) close(fd_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write_all(std::string_view text) {
    while (!text.empty()) {
      const auto size = write(fd_, text.data(), text.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) fail();
      text.remove_prefix(static_cast<std::size_t>(size));
    }
  }
  void sync() {
    if (fsync(fd_) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ExitCode::failed,
                fmt::format("cannot write {}: {}", shown_text(path_), std::strerror(errno)));
  }

  std::string path_;
  int fd_;
};

}  // namespace

MaildirWriter::MaildirWriter(std::string directory)
    : directory_(std::move(directory)), host_(host_for_names()) {
  for (const auto* part : {"tmp", "new", "cur"}) {
    const auto path = directory_ + "/" + part;
    std::error_code failure;
    const bool is_new = std::filesystem::create_directories(path, failure);
    // Whoever may read the mails could use their links.
    if (is_new) std::filesystem::permissions(path, std::filesystem::perms::owner_all, failure);
    if (!failure && access(path.c_str(), R_OK | W_OK | X_OK) != 0)
      failure = std::error_code(errno, std::generic_category());
    if (failure)
      throw Error(ExitCode::configuration,
                  fmt::format("cannot write mails into {}: {}", shown_text(path), failure.message()),
                  "--capture DIR names a directory that this user may make or write into");
  }
}

std::string MaildirWriter::write(std::string_view head, std::string_view body) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(wall_now().time_since_epoch());
  constexpr std::int64_t million = 1'000'000;
  auto name = fmt::format("{}.M{:06}P{}Q{:06}.{}", now.count() / million, now.count() % million, getpid(),
                          ++mails_written, host_);
  const auto begun = directory_ + "/tmp/" + name;
  try {
    NewFile file(begun);
    file.write_all(head);
    file.write_all(body);
    file.sync();
    if (std::rename(begun.c_str(), (directory_ + "/new/" + name).c_str()) != 0)
      throw Error(ExitCode::failed,
                  fmt::format("cannot write into {}/new: {}", shown_text(directory_), std::strerror(errno)));
  } catch (const Error&) {
    unlink(begun.c_str());
    throw;
  }
  return name;
}

void MaildirWriter::flush() const {
  const int fd = open((directory_ + "/new").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

}  // namespace mailroom::capture
