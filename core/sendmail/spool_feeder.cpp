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
#include "sendmail/aliases.hpp"
#include "sendmail/dialogue.hpp"

namespace mailroom::sendmail {
namespace {

constexpr std::size_t most_at_once = 1000;
constexpr Milliseconds pause{10'000};

}  // namespace

SpoolFeeder::SpoolFeeder(std::string directory, std::string role, std::string aliases, std::string host,
                         Log& log)
    : directory_(std::move(directory)),
      role_(std::move(role)),
      aliases_(std::move(aliases)),
      host_(std::move(host)),
      log_(log) {}

SpoolFeeder::~SpoolFeeder() {
  {
    const std::lock_guard lock(mutex_);
    if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
  }
  if (thread_.joinable()) thread_.join();
}

void SpoolFeeder::turned(const LetIn& let_in) {
  const auto now = steady_now();
  if (is_busy_ || now < not_before_) return;
  std::vector<SpooledFile> files;
  try {
    files = waiting_in(directory_);
  } catch (const Error& error) {
    not_before_ = now + pause;
    return complain(error.what());
  }
  if (files.empty()) return complaint_.clear();
  const auto role = take_turn(files, now);
  if (files.empty()) return;
  if (role.empty()) {
    pauses_[role].until = now + pause;
    return complain("the user of the file " + files.front().name + " has no name");
  }
  complaint_.clear();
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  if (thread_.joinable()) thread_.join();
  is_busy_ = true;
  {
    const std::lock_guard lock(mutex_);
    fd_ = ends[1];
  }
  thread_ = std::thread([this, fd = ends[1], role, files = std::move(files)] { feed(fd, role, files); });
  let_in(ends[0], role);
}

/// The role whose turn it is, and of `files` those that it may mail now; none: nobody's.
std::string SpoolFeeder::take_turn(std::vector<SpooledFile>& files, TimePoint now) const {
  std::map<uid_t, std::string> roles;
  for (const auto& file : files)
    if (!roles.contains(file.owner)) roles[file.owner] = role_of(file);
  // A role whose mails wait keeps no other waiting.
  std::erase_if(files, [&](const SpooledFile& file) {
    const auto found = pauses_.find(roles[file.owner]);
    return found != pauses_.end() && now < found->second.until;
  });
  if (files.empty()) return {};
  const auto role = roles[files.front().owner];
  std::erase_if(files, [&](const SpooledFile& file) { return roles[file.owner] != role; });
  // Nor does one mail that waits the others of its role.
  if (const auto found = pauses_.find(role); found != pauses_.end())
    std::rotate(files.begin(), std::ranges::upper_bound(files, found->second.file, {}, &SpooledFile::name),
                files.end());
  if (files.size() > most_at_once) files.resize(most_at_once);
  return role;
}

void SpoolFeeder::feed(int fd, const std::string& role, const std::vector<SpooledFile>& files) {
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
  pauses_.erase(role);
  if (taken < files.size()) pauses_[role] = {steady_now() + pause, files[taken].name};
  is_busy_ = false;
}

Answer SpoolFeeder::submit(Dialogue& dialogue, Mail mail) const {
  try {
    mail.recipients = Aliases::of_file(aliases_).resolved(mail.recipients);
  } catch (const Error& error) {
    return {Fate::refused, error.what()};
  }
  return dialogue.submit(mail);
}

bool SpoolFeeder::take(Dialogue& dialogue, const SpooledFile& file) {
  const auto mail = read_from_spool(directory_, file);
  if (!mail) {
    log_.error("a file of the spool is no mail", {{"file", keep_refused(directory_, file)}});
    return true;
  }
  const auto answer = submit(dialogue, *mail);
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
  if (reason == complaint_) return;
  complaint_ = reason;
  log_.error("cannot take mails from the spool", {{"reason", reason}});
}

}  // namespace mailroom::sendmail
