// The name of the file is removed at once, so that nothing is left of it however the process ends.

#include "base/spool.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"

namespace mailroom {
namespace {

[[noreturn]] void throw_failure(const char* what) {
  throw Error(ExitCode::failed, fmt::format("cannot {} a temporary file: {}", what, std::strerror(errno)),
              "set TMPDIR to a directory with room that this user can write to");
}

int open_unnamed() {
  std::error_code error;
  auto directory = std::filesystem::temp_directory_path(error);
  if (error) directory = "/tmp";
  auto name = (directory / "mailroom-XXXXXX").string();
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) throw_failure("create");
  unlink(name.c_str());
  return fd;
}

}  // namespace

TemporaryFile::TemporaryFile() : fd_(open_unnamed()) {}

TemporaryFile::~TemporaryFile() {
  close(fd_);
}

std::size_t TemporaryFile::append(std::string_view bytes) {
  const auto place = end_;
  for (std::size_t written = 0; written < bytes.size();) {
    const auto some = bytes.substr(written);
    const auto count = pwrite(fd_, some.data(), some.size(), static_cast<off_t>(place + written));
    if (count > 0) {
      written += static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      throw_failure("write to");
    }
  }
  end_ += bytes.size();
  return place;
}

std::string TemporaryFile::read(std::size_t place, std::size_t size) const {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const auto count = pread(fd_, bytes.data() + done, size - done, static_cast<off_t>(place + done));
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count == 0) {
      errno = EIO;
      throw_failure("read");
    } else if (errno != EINTR) {
      throw_failure("read");
    }
  }
  return bytes;
}

std::string_view SpooledText::read(std::string& memory) const {
  if (!file_) return text_;
  memory = file_->read(place_, size_);
  return memory;
}

void Spool::begin_batch() {
  file_.reset();
  in_memory_ = 0;
  has_failed_ = false;
}

SpooledText Spool::keep(std::string text) {
  if (in_memory_ + text.size() > memory_size && !has_failed_) {
    try {
      if (!file_) file_ = std::make_shared<TemporaryFile>();
      return SpooledText(file_, file_->append(text), text.size());
    } catch (const Error& error) {
      has_failed_ = true;
      if (log_ != nullptr && !std::exchange(has_warned_, true))
        log_->warn("large batches stay in memory", {{"reason", error.what()}, {"hint", error.hint()}});
    }
  }
  in_memory_ += text.size();
  return SpooledText(std::move(text));
}

}  // namespace mailroom
