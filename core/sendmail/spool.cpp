// A file has a temporary name until it is whole. It begins with lines for the envelope, and an empty one.

#include "sendmail/spool.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom::sendmail {
namespace {

constexpr std::string_view first_line = "mailroom 1";
constexpr std::string_view refused = "refused-";
constexpr off_t largest = 128 * 1024 * 1024;  ///< submission.max_size is at most 100 MB

Error failure(const std::string& what, const std::string& path) {
  return Error(
      ExitCode::failed, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)),
      "the spool is a directory that everyone may write and enter (mode 3777), of the group of the service");
}

struct Descriptor {
  int fd;
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string spooled(const Mail& mail) {
  auto text = fmt::format("{}\nS {}\n", first_line, mail.sender);
  for (const auto& recipient : mail.recipients)
    text += fmt::format("R {}\n", recipient);
  return text + "\n" + mail.text;
}

std::optional<Mail> parsed(std::string_view text) {
  Mail mail;
  bool is_first = true;
  while (true) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const auto line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (std::exchange(is_first, false)) {
      if (line != first_line) return std::nullopt;
    } else if (line.empty()) {
      break;
    } else if (line.starts_with("S ")) {
      mail.sender = line.substr(2);
    } else if (line.starts_with("R ")) {
      mail.recipients.emplace_back(line.substr(2));
    } else {
      return std::nullopt;
    }
  }
  if (mail.recipients.empty()) return std::nullopt;
  mail.text = text;
  return mail;
}

}  // namespace

void write_to_spool(const std::string& directory, const Mail& mail, const std::string& random) {
  // The time in front, so that names sort as the mails came.
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto name = fmt::format("{:011}{:09}-{}", now.tv_sec, now.tv_nsec, random);
  const auto path = directory + "/" + name;
  const auto begun = directory + "/." + name;
  const Descriptor folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd < 0) throw failure("open the spool", directory);
  const Descriptor file(open(begun.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (file.fd < 0) throw failure("write a mail to", begun);
  // Whatever the umask is: the group is that of the service.
  const bool is_whole = fchmod(file.fd, 0640) == 0 && write_all(file.fd, spooled(mail)) &&
                        fsync(file.fd) == 0 && rename(begun.c_str(), path.c_str()) == 0;
  if (!is_whole) {
    const auto error = failure("write a mail to", begun);
    unlink(begun.c_str());
    throw error;
  }
  if (fsync(folder.fd) != 0) throw failure("write the spool", directory);
}

std::vector<SpooledFile> waiting_in(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(directory.c_str()), closedir);
  if (!folder) throw failure("read the spool", directory);
  std::vector<SpooledFile> files;
  while (const auto* entry = readdir(folder.get())) {
    const std::string name = static_cast<const char*>(entry->d_name);
    struct stat status {};
    if (name.front() == '.' || name.starts_with(refused)) continue;
    if (fstatat(dirfd(folder.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode))
      files.push_back({name, status.st_uid});
  }
  std::ranges::sort(files, {}, &SpooledFile::name);
  return files;
}

std::optional<Mail> read_from_spool(const std::string& directory, const SpooledFile& spooled_file) {
  const auto path = directory + "/" + spooled_file.name;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.fd < 0 || fstat(file.fd, &status) != 0) throw failure("read", path);
  // A link that somebody else has made of a file of its owner.
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1 || status.st_uid != spooled_file.owner ||
      status.st_size > largest)
    return std::nullopt;
  std::string text;
  std::array<char, 65536> bytes{};
  for (ssize_t size = 0; (size = ::read(file.fd, bytes.data(), bytes.size())) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw failure("read", path);
    text.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return parsed(text);
}

void remove_from_spool(const std::string& directory, const SpooledFile& file) {
  const auto path = directory + "/" + file.name;
  if (unlink(path.c_str()) != 0) throw failure("remove", path);
}

std::string keep_refused(const std::string& directory, const SpooledFile& file) {
  const auto path = directory + "/" + file.name;
  auto other = fmt::format("{}/{}{}", directory, refused, file.name);
  if (rename(path.c_str(), other.c_str()) != 0) throw failure("rename", path);
  return other;
}

}  // namespace mailroom::sendmail
