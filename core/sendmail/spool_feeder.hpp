// Submits the mails of the spool to the service of this process, each as the role of its owner.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "sendmail/spool.hpp"

namespace mailroom::sendmail {

/// A mail leaves the spool when the service has stored it; one that is refused for good stays as refused, and
/// the log says so. A service that ends in between finds it again, and the database knows its Message-ID.
class SpoolFeeder {
 public:
  /// The service takes one end of a connection of `role`.
  using LetIn = std::function<void(int fd, const std::string& role)>;

  /// `role`: as which all mail; `*` for the users whose the files are. `log` must outlive this.
  SpoolFeeder(std::string directory, std::string role, std::string host, Log& log);
  /// Ends the dialogue.
  ~SpoolFeeder();
  SpoolFeeder(const SpoolFeeder&) = delete;
  SpoolFeeder& operator=(const SpoolFeeder&) = delete;

  /// Looks for mails, for the thread of the service. Another thread submits them.
  void turned(const LetIn& let_in);

 private:
  void feed(int fd, const std::vector<SpooledFile>& files);
  /// False if the service takes no more now.
  bool take(class Dialogue& dialogue, const SpooledFile& file);
  std::string role_of(const SpooledFile& file) const;
  void complain(const std::string& reason);

  const std::string directory_;
  const std::string role_;
  const std::string host_;
  Log& log_;
  std::atomic<bool> is_busy_ = false;
  std::atomic<TimePoint> not_before_{};
  std::string waits_;      ///< the file that was not taken; of the thread that submits, while it runs
  std::string complaint_;  ///< the last; of the thread of the service
  std::mutex mutex_;       ///< of the next
  int fd_ = -1;
  std::thread thread_;
};

}  // namespace mailroom::sendmail
