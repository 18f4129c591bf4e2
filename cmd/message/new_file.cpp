// Never replaces a file, and gives nobody else a right to read it.

#include "cmd/message/new_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/output.hpp"

namespace mailroom::cmd {

void write_new_file(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
  if (fd < 0 && errno == EEXIST)
    throw Error(ExitCode::usage, fmt::format("{} exists", path), "give the name of a new file");
  const auto refuse = [&] {
    throw Error(ExitCode::output_closed, fmt::format("cannot write {}: {}", path, std::strerror(errno)),
                "give the name of a new file in a directory that you may write to");
  };
  if (fd < 0) refuse();
  Output(fd).write(text);
  if (fsync(fd) != 0 || close(fd) != 0) refuse();
}

}  // namespace mailroom::cmd
