// Stores the mails of one role: what waits becomes one group, one statement and one commit; while it is
// flushed, the next group collects.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "process/retry.hpp"
#include "submission/conversation.hpp"
#include "submission/submission_session.hpp"
#include "submission/verdict.hpp"

namespace mailroom::submission {

class RoleWriter {
 public:
  /// `opened`: a session of the role, or null. Without a password it connects by the means of the target.
  /// Counts each statement that was committed. `log` and `commits` must outlive this.
  RoleWriter(const DatabaseAccess& access, const Login& login, std::unique_ptr<SubmissionSession> opened,
             Tell tell, Log& log, std::atomic<std::int64_t>& commits);
  /// Tries what waits once more, and ends.
  ~RoleWriter();
  RoleWriter(const RoleWriter&) = delete;
  RoleWriter& operator=(const RoleWriter&) = delete;

  void add(std::uint64_t session, SubmittedMail mail);
  void set_password(const std::string& password);
  /// True if it has had nothing to do for so long: its session and password may go.
  bool is_idle_for(Milliseconds time) const;

 private:
  struct Waiting {
    std::uint64_t session = 0;
    SubmittedMail mail{};
    TimePoint until{};
  };
  using Group = std::vector<Waiting>;

  void work();
  Group next_group();
  void store(Group& group);
  /// True if the group has its verdicts, or nothing is left of it.
  bool store_once(Group& group);
  void store_each(Group& group);
  /// Tells those that have waited for too long, of the group and behind it.
  void give_up_late(Group& group);
  void refuse(const Waiting& waiting, const Reply& reply);
  void say_stored(const Group& group, const SubmissionSession::Stored& stored);
  bool connect();
  bool is_not_let_in(const Group& group);
  void is_away(const std::string& reason);
  bool waits(Milliseconds time);

  const DatabaseAccess access_;
  const std::string role_;
  const Tell tell_;
  std::atomic<std::int64_t>& commits_;
  Log& log_;
  process::RetryLog retries_;  ///< of the thread
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::string password_;
  const bool has_password_;  ///< its own, of a login
  std::deque<Waiting> waiting_;
  TimePoint busy_at_;
  bool is_storing_ = false;
  bool has_ended_ = false;
  std::unique_ptr<SubmissionSession> session_;  ///< of the thread
  std::thread thread_;
};

}  // namespace mailroom::submission
