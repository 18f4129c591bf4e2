// The only place that says 250 to a mail, and it does so when the statement has been committed.

#include "submission/role_writer.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <utility>

#include "process/retry.hpp"

namespace mailroom::submission {

class RoleStore : public GroupStore<MailWork> {
 public:
  RoleStore(const DatabaseAccess& access, const Login& login, std::unique_ptr<SubmissionSession> opened,
            Tell tell, Log& log, std::atomic<std::int64_t>& commits)
      : access_(access),
        role_(login.role),
        tell_(std::move(tell)),
        commits_(commits),
        retries_(log),
        password_(login.password),
        has_password_(!login.password.empty()),
        session_(std::move(opened)) {}
  ~RoleStore() override { OPENSSL_cleanse(password_.data(), password_.size()); }
  RoleStore(const RoleStore&) = delete;
  RoleStore& operator=(const RoleStore&) = delete;

  bool store(std::vector<MailWork>& group) override;
  void give_up(const MailWork& work) override { refuse(work, replies::database_away); }
  /// Any thread may call it.
  void set_password(const std::string& password) {
    const std::lock_guard lock(mutex_);
    password_ = password;
  }

 private:
  void refuse(const MailWork& work, const Reply& reply) {
    tell_({.session = work.session, .role = role_, .reply = reply});
  }
  void say_stored(const std::vector<MailWork>& group, const SubmissionSession::Stored& stored);
  bool connect();
  bool is_not_let_in(const std::vector<MailWork>& group);
  void is_away(const std::string& reason) {
    retries_.failed(fmt::format("the mails of {} wait for the database", role_), reason, steady_now());
  }

  const DatabaseAccess access_;
  const std::string role_;
  const Tell tell_;
  std::atomic<std::int64_t>& commits_;
  process::RetryLog retries_;
  std::mutex mutex_;
  std::string password_;
  const bool has_password_;  ///< its own, of a login
  std::unique_ptr<SubmissionSession> session_;
};

bool RoleStore::connect() {
  if (session_ && session_->is_open()) return true;
  std::string password;
  {
    const std::lock_guard lock(mutex_);
    password = password_;
  }
  session_ = std::make_unique<SubmissionSession>(access_, role_, password);
  OPENSSL_cleanse(password.data(), password.size());
  return session_->is_open();
}

/// True if waiting would be in vain: all of the group have their answer. Who logs in had it then.
bool RoleStore::is_not_let_in(const std::vector<MailWork>& group) {
  if (has_password_) return false;
  const auto refusal = SubmissionSession::refusal_of_role(access_, role_, session_->problem());
  if (!refusal) return false;
  for (const auto& each : group)
    refuse(each, *refusal);
  return true;
}

bool RoleStore::store(std::vector<MailWork>& group) {
  if (!connect()) {
    if (is_not_let_in(group)) {
      group.clear();
      return true;
    }
    is_away(session_->problem());
    return false;
  }
  std::vector<const SubmittedMail*> mails;
  for (const auto& each : group)
    mails.push_back(&each.mail);
  const auto result = session_->store(mails);
  if (const auto* away = std::get_if<SubmissionSession::Away>(&result)) {
    is_away(away->reason);
    if (away->wants_new_session) session_.reset();
    return false;
  }
  retries_.worked();
  if (const auto* stored = std::get_if<SubmissionSession::Stored>(&result)) {
    say_stored(group, *stored);
    group.clear();
  } else if (group.size() == 1) {
    refuse(group.front(), std::get<Reply>(result));
    group.clear();
  }
  return true;
}

void RoleStore::say_stored(const std::vector<MailWork>& group, const SubmissionSession::Stored& stored) {
  ++commits_;
  for (const auto& each : group) {
    const auto found = stored.ids.find(each.mail.key);
    if (found == stored.ids.end()) {
      refuse(each, replies::database_away);
    } else {
      tell_({.session = each.session, .role = role_, .message = found->second});
    }
  }
}

RoleWriter::RoleWriter(std::unique_ptr<RoleStore> store, Milliseconds patience)
    : store_(*store), writer_(std::move(store), patience) {}

RoleWriter::RoleWriter(const DatabaseAccess& access, const Login& login,
                       std::unique_ptr<SubmissionSession> opened, Tell tell, Log& log,
                       std::atomic<std::int64_t>& commits)
    : RoleWriter(std::make_unique<RoleStore>(access, login, std::move(opened), std::move(tell), log, commits),
                 access.patience) {}

void RoleWriter::add(std::uint64_t session, SubmittedMail mail) {
  MailWork work;
  work.key = mail.key;
  work.bytes = mail.raw.size();
  work.session = session;
  work.mail = std::move(mail);
  writer_.add(std::move(work));
}

void RoleWriter::set_password(const std::string& password) {
  store_.set_password(password);
}

}  // namespace mailroom::submission
