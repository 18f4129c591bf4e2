// Submits the mails of the spool to the service of this process, each as the role of its owner.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "sendmail/dialogue.hpp"
#include "sendmail/spool.hpp"

namespace mailroom::sendmail {

/// A mail leaves the spool when the service has stored it; one that is refused for good stays as refused, and
/// the log says so. A service that ends in between finds it again, and the database knows its Message-ID.
class SpoolFeeder {
 public:
  /// The service takes one end of a connection of `role`.
  using LetIn = std::function<void(int fd, const std::string& role)>;

  /// `role`: as which all mail; `*` for the users whose the files are. `aliases`: a file, as it is when a
  /// mail leaves the spool, since it may have been none when that came. `log` must outlive this.
  SpoolFeeder(std::string directory, std::string role, std::string aliases, std::string host, Log& log);
  /// Ends the dialogue.
  ~SpoolFeeder();
  SpoolFeeder(const SpoolFeeder&) = delete;
  SpoolFeeder& operator=(const SpoolFeeder&) = delete;

  /// Looks for mails, for the thread of the service. Another thread submits them.
  void turned(const LetIn& let_in);

 private:
  std::string take_turn(std::vector<SpooledFile>& files, TimePoint now) const;
  void feed(int fd, const std::string& role, const std::vector<SpooledFile>& files);
  Answer submit(Dialogue& dialogue, Mail mail) const;
  /// False if the service takes no more now.
  bool take(Dialogue& dialogue, const SpooledFile& file);
  std::string role_of(const SpooledFile& file) const;
  void complain(const std::string& reason);

  const std::string directory_;
  const std::string role_;
  const std::string aliases_;
  const std::string host_;
  Log& log_;
  std::atomic<bool> is_busy_ = false;
  /// Since a mail of a role was not taken.
  struct Pause {
    TimePoint until{};
    std::string file{};
  };
  std::map<std::string, Pause> pauses_;  ///< by roles; of the thread that submits, while it runs
  TimePoint not_before_{};               ///< of the thread of the service, as the next
  std::string complaint_;                ///< the last
  std::mutex mutex_;                     ///< of the next
  int fd_ = -1;
  std::thread thread_;
};

}  // namespace mailroom::sendmail
