// The only place that says 250 to a mail, and it does so when the statement has been committed.

#include "submission/role_writer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <openssl/crypto.h>
#include <set>
#include <utility>

#include "base/threads.hpp"

namespace mailroom::submission {
namespace {

constexpr std::size_t most_mails = 256;
constexpr std::size_t most_bytes = std::size_t{8} * 1024 * 1024;
constexpr Milliseconds pause{200};  ///< before the next attempt

}  // namespace

RoleWriter::RoleWriter(const DatabaseAccess& access, const Login& login,
                       std::unique_ptr<SubmissionSession> opened, Tell tell, Log& log,
                       std::atomic<std::int64_t>& commits)
    : access_(access),
      role_(login.role),
      tell_(std::move(tell)),
      commits_(commits),
      log_(log),
      retries_(log),
      password_(login.password),
      has_password_(!login.password.empty()),
      busy_at_(steady_now()),
      session_(std::move(opened)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { work(); });
}

RoleWriter::~RoleWriter() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  arrived_.notify_all();
  thread_.join();
  OPENSSL_cleanse(password_.data(), password_.size());
}

void RoleWriter::add(std::uint64_t session, SubmittedMail mail) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({session, std::move(mail), steady_now() + access_.patience});
    busy_at_ = steady_now();
  }
  arrived_.notify_one();
}

void RoleWriter::set_password(const std::string& password) {
  const std::lock_guard lock(mutex_);
  password_ = password;
}

bool RoleWriter::is_idle_for(Milliseconds time) const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !is_storing_ && steady_now() - busy_at_ >= time;
}

void RoleWriter::work() {
  for (;;) {
    auto group = next_group();
    if (group.empty()) return;
    store(group);
    const std::lock_guard lock(mutex_);
    busy_at_ = steady_now();
    is_storing_ = false;
  }
}

/// Nothing: it ends.
RoleWriter::Group RoleWriter::next_group() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return has_ended_ || !waiting_.empty(); });
  Group group;
  // The statement takes no two mails of one key.
  std::set<std::string> keys;
  std::size_t bytes = 0;
  while (!waiting_.empty() && group.size() < most_mails && bytes < most_bytes &&
         keys.insert(waiting_.front().mail.key).second) {
    bytes += waiting_.front().mail.raw.size();
    group.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  is_storing_ = !group.empty();
  return group;
}

void RoleWriter::store(Group& group) {
  while (!group.empty() && !store_once(group)) {
    give_up_late(group);
    if (!group.empty() && !waits(pause)) {
      for (auto& each : group)
        each.until = {};
    }
  }
}

/// False if the service ends meanwhile.
bool RoleWriter::waits(Milliseconds time) {
  std::unique_lock lock(mutex_);
  return !arrived_.wait_for(lock, time, [this] { return has_ended_; });
}

void RoleWriter::refuse(const Waiting& waiting, const Reply& reply) {
  tell_({.session = waiting.session, .role = role_, .reply = reply});
}

void RoleWriter::give_up_late(Group& group) {
  const auto now = steady_now();
  const auto is_late = [now](const Waiting& each) { return each.until <= now; };
  Group late;
  const auto take_late = [&](auto& all) {
    const auto first =
        std::stable_partition(all.begin(), all.end(), [&](const Waiting& each) { return !is_late(each); });
    std::move(first, all.end(), std::back_inserter(late));
    all.erase(first, all.end());
  };
  take_late(group);
  {
    const std::lock_guard lock(mutex_);
    take_late(waiting_);
  }
  for (const auto& each : late)
    refuse(each, replies::database_away);
}

void RoleWriter::is_away(const std::string& reason) {
  retries_.failed(fmt::format("the mails of {} wait for the database", role_), reason, steady_now());
}

bool RoleWriter::connect() {
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
bool RoleWriter::is_not_let_in(const Group& group) {
  if (has_password_) return false;
  const auto refusal = SubmissionSession::refusal_of_role(access_, role_, session_->problem());
  if (!refusal) return false;
  for (const auto& each : group)
    refuse(each, *refusal);
  return true;
}

bool RoleWriter::store_once(Group& group) {
  if (!connect()) {
    if (is_not_let_in(group)) return true;
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
    return true;
  }
  if (group.size() > 1) {
    store_each(group);
    return group.empty();
  }
  refuse(group.front(), std::get<Reply>(result));
  return true;
}

void RoleWriter::say_stored(const Group& group, const SubmissionSession::Stored& stored) {
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

/// One of them is refused: each by itself, so that only that one learns of it. Leaves those that have no
/// verdict yet.
void RoleWriter::store_each(Group& group) {
  while (!group.empty()) {
    Group one;
    one.push_back(std::move(group.back()));
    group.pop_back();
    if (!store_once(one)) {
      group.push_back(std::move(one.front()));
      return;
    }
  }
}

}  // namespace mailroom::submission
