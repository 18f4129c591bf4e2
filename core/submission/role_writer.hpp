// Stores the mails of one role that come by SMTP, by the session of that role.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "submission/conversation.hpp"
#include "submission/group_writer.hpp"
#include "submission/submission_session.hpp"
#include "submission/verdict.hpp"

namespace mailroom::submission {

/// A mail of a client.
struct MailWork : GroupWork {
  std::uint64_t session = 0;
  SubmittedMail mail{};
};

class RoleStore;

class RoleWriter {
 public:
  /// `opened`: a session of the role, or null. Without a password it connects by the means of the target.
  /// Counts each statement that was committed. `log` and `commits` must outlive this.
  RoleWriter(const DatabaseAccess& access, const Login& login, std::unique_ptr<SubmissionSession> opened,
             Tell tell, Log& log, std::atomic<std::int64_t>& commits);

  void add(std::uint64_t session, SubmittedMail mail);
  void set_password(const std::string& password);
  bool is_idle_for(Milliseconds time) const { return writer_.is_idle_for(time); }

 private:
  RoleWriter(std::unique_ptr<RoleStore> store, Milliseconds patience);

  RoleStore& store_;
  GroupWriter<MailWork> writer_;
};

}  // namespace mailroom::submission
