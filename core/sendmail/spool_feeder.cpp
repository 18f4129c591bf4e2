// The mails of one owner share a connection, as the service knows one role of each.

#include "sendmail/spool_feeder.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "sendmail/dialogue.hpp"

namespace mailroom::sendmail {
namespace {

constexpr std::size_t most_at_once = 1000;
constexpr Milliseconds pause{10'000};

}  // namespace

SpoolFeeder::SpoolFeeder(std::string directory, std::string role, std::string host, Log& log)
    : directory_(std::move(directory)), role_(std::move(role)), host_(std::move(host)), log_(log) {}

SpoolFeeder::~SpoolFeeder() {
  {
    const std::lock_guard lock(mutex_);
    if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
  }
  if (thread_.joinable()) thread_.join();
}

void SpoolFeeder::turned(const LetIn& let_in) {
  if (is_busy_ || steady_now() < not_before_.load()) return;
  std::vector<SpooledFile> files;
  try {
    files = waiting_in(directory_);
  } catch (const Error& error) {
    return complain(error.what());
  }
  complaint_.clear();
  if (files.empty()) return;
  // One that waits keeps no other waiting.
  std::rotate(files.begin(), std::ranges::upper_bound(files, waits_, {}, &SpooledFile::name), files.end());
  const auto role = role_of(files.front());
  std::erase_if(files, [&](const SpooledFile& file) { return role_of(file) != role; });
  if (files.size() > most_at_once) files.resize(most_at_once);
  if (role.empty()) {
    waits_ = files.back().name;
    return complain("the user of the file " + files.front().name + " has no name");
  }
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  if (thread_.joinable()) thread_.join();
  is_busy_ = true;
  {
    const std::lock_guard lock(mutex_);
    fd_ = ends[1];
  }
  thread_ = std::thread([this, fd = ends[1], files = std::move(files)] { feed(fd, files); });
  let_in(ends[0], role);
}

void SpoolFeeder::feed(int fd, const std::vector<SpooledFile>& files) {
  std::size_t taken = 0;
  {
    Dialogue dialogue(fd, host_);
    try {
      while (taken < files.size() && take(dialogue, files[taken]))
        ++taken;
    } catch (const std::exception& error) {
      log_.error("cannot take a mail from the spool", {{"reason", error.what()}});
    }
    // Before the descriptor is closed, and may be another's.
    const std::lock_guard lock(mutex_);
    fd_ = -1;
  }
  if (taken > 0) log_.info("took mails from the spool", {{"mails", static_cast<std::int64_t>(taken)}});
  if (taken < files.size()) not_before_ = steady_now() + pause;
  waits_ = taken < files.size() ? files[taken].name : std::string();
  is_busy_ = false;
}

bool SpoolFeeder::take(Dialogue& dialogue, const SpooledFile& file) {
  const auto mail = read_from_spool(directory_, file);
  if (!mail) {
    log_.error("a file of the spool is no mail", {{"file", keep_refused(directory_, file)}});
    return true;
  }
  const auto answer = dialogue.submit(*mail);
  if (answer.fate == Fate::later) {
    log_.warn("a mail waits in the spool", {{"file", file.name}, {"reason", answer.words}});
    return false;
  }
  if (answer.fate == Fate::stored) {
    remove_from_spool(directory_, file);
  } else {
    log_.error("a mail of the spool is refused",
               {{"file", keep_refused(directory_, file)}, {"reason", answer.words}});
  }
  return !dialogue.is_over();
}

std::string SpoolFeeder::role_of(const SpooledFile& file) const {
  if (role_ != "*") return role_;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> memory{};
  getpwuid_r(file.owner, &entry, memory.data(), memory.size(), &found);
  return found == nullptr ? std::string() : std::string(found->pw_name);
}

void SpoolFeeder::complain(const std::string& reason) {
  not_before_ = steady_now() + pause;
  if (reason == complaint_) return;
  complaint_ = reason;
  log_.error("cannot take mails from the spool", {{"reason", reason}});
}

}  // namespace mailroom::sendmail
