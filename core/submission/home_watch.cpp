// A session of its own, with the means of database.url: a role that submits may read nothing.

#include "submission/home_watch.hpp"

#include "base/error.hpp"
#include "base/threads.hpp"
#include "queue/home.hpp"

namespace mailroom::submission {

HomeWatch::HomeWatch(std::unique_ptr<db::Connection> connection, db::DatabaseTarget target, Log& log)
    : target_(std::move(target)), log_(log), connection_(std::move(connection)) {
  look();
  const BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

HomeWatch::~HomeWatch() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

std::optional<Reply> HomeWatch::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

void HomeWatch::look() {
  std::optional<Reply> refusal;
  std::string reason;
  if (connection_->run("SELECT pg_is_in_recovery() AS is_standby")[0].flag("is_standby")) {
    reason = "the database is a standby";
    refusal = replies::is_standby;
  } else if (reason = queue::read_home(*connection_).problem; !reason.empty()) {
    refusal = replies::is_copy;
  }
  const std::lock_guard lock(mutex_);
  const bool is_news = refusal.has_value() != refusal_.has_value();
  refusal_ = refusal;
  if (is_news && refusal) log_.warn("takes no mails", {{"reason", reason}, {"fix", "mailroom adopt"}});
  if (is_news && !refusal) log_.info("takes mails again");
}

void HomeWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, interval, [this] { return has_ended_; })) {
    lock.unlock();
    try {
      if (!connection_)
        connection_ = std::make_unique<db::Connection>(target_, "mailroom submission",
                                                       db::SessionLimits{interval, interval});
      look();
    } catch (const Error&) {
      // Writers say what is wrong with the database when a mail has come.
      connection_.reset();
    }
    lock.lock();
  }
}

}  // namespace mailroom::submission
