// Compares what stat(2) says of a file with what it said before.

#include "preview/directory_watch.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mailroom::preview {
namespace {

constexpr std::chrono::seconds every_file{3};  ///< how often all are looked at
constexpr std::uint32_t watched_events =
    IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF;

struct CloseDirectory {
  void operator()(DIR* entries) const { closedir(entries); }
};

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

DirectoryWatch::DirectoryWatch(std::string directory)
    : directory_(std::move(directory)), fd_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

DirectoryWatch::~DirectoryWatch() {
  if (fd_ >= 0) close(fd_);
}

std::optional<std::set<std::string>> DirectoryWatch::take_notified() {
  std::set<std::string> names;
  bool is_complete = fd_ >= 0 && watch_ >= 0;
  alignas(inotify_event) std::array<char, 16 * 1024> events{};
  for (;;) {
    const auto size = fd_ < 0 ? 0 : ::read(fd_, events.data(), events.size());
    if (size <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, events.data() + at, sizeof event);
      const bool is_of_directory = event.len == 0;
      if (is_of_directory) is_complete = false;
      if (!is_of_directory) names.emplace(events.data() + at + sizeof event);
      at += sizeof event + event.len;
    }
  }
  const auto now = steady_now();
  if (!is_complete || now >= all_seen_ + every_file) return std::nullopt;
  return names;
}

std::optional<DirectoryWatch::Stamp> DirectoryWatch::look_at(int directory, const std::string& name) const {
  struct stat file {};
  const auto path = directory == AT_FDCWD ? directory_ + "/" + name : name;
  if (name.starts_with('.') || fstatat(directory, path.c_str(), &file, 0) != 0) return std::nullopt;
  return Stamp{.device = file.st_dev,
               .inode = file.st_ino,
               .size = file.st_size,
               .modified = nanoseconds(file.st_mtim),
               .changed = nanoseconds(file.st_ctim)};
}

std::vector<std::string> DirectoryWatch::look_at_all() {
  all_seen_ = steady_now();
  // Adding it again finds a directory that was made anew, and changes nothing otherwise.
  if (fd_ >= 0) watch_ = inotify_add_watch(fd_, directory_.c_str(), watched_events);
  std::map<std::string, Stamp> seen;
  const std::unique_ptr<DIR, CloseDirectory> entries(opendir(directory_.c_str()));
  error_ = entries ? "" : std::strerror(errno);
  while (const auto* entry = entries ? readdir(entries.get()) : nullptr) {
    if (auto stamp = look_at(dirfd(entries.get()), entry->d_name)) seen.emplace(entry->d_name, *stamp);
  }
  std::vector<std::string> names;
  for (const auto& [name, stamp] : seen) {
    const auto before = known_.find(name);
    if (before == known_.end() || before->second != stamp) names.push_back(name);
  }
  for (const auto& [name, stamp] : known_) {
    if (seen.count(name) == 0) names.push_back(name);
  }
  known_ = std::move(seen);
  return names;
}

std::vector<std::string> DirectoryWatch::changes() {
  const auto notified = take_notified();
  if (!notified) return look_at_all();
  std::vector<std::string> names;
  for (const auto& name : *notified) {
    const auto stamp = look_at(AT_FDCWD, name);
    const auto before = known_.find(name);
    const auto is_known = before != known_.end();
    if (stamp ? is_known && before->second == *stamp : !is_known) continue;
    names.push_back(name);
    if (stamp) {
      known_[name] = *stamp;
    } else {
      known_.erase(before);
    }
  }
  return names;
}

}  // namespace mailroom::preview
