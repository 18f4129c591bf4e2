// The thread of the reader: short time limits, and a second try where a kept session has ended.

#include "metrics/database_reader.hpp"

#include <utility>

#include "base/threads.hpp"
#include "db/conninfo.hpp"

namespace mailroom::metrics {
namespace {

/// A server or a pooler that does not answer must not keep the process from ending.
constexpr db::SessionLimits limits{.answer = Milliseconds(3000),
                                   .statement = DatabaseReader::statement_timeout};

db::DatabaseTarget impatient(db::DatabaseTarget target) {
  target.conninfo = db::with_fallbacks(target.conninfo, {{"tcp_user_timeout", "5000"}});
  return target;
}

}  // namespace

DatabaseReader::DatabaseReader(Source source, Log& log) : log_(log), source_(std::move(source)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { work(); });
}

DatabaseReader::~DatabaseReader() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  asked_.notify_all();
  thread_.join();
}

void DatabaseReader::configure(Source source) {
  const std::lock_guard lock(mutex_);
  source_ = std::move(source);
  latest_.reset();
}

std::shared_ptr<const DatabaseReading> DatabaseReader::latest(Milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!is_fresh()) {
    is_asked_ = true;
    asked_.notify_all();
    answered_.wait_for(lock, patience, [this] { return is_fresh(); });
  }
  return is_fresh() ? latest_ : nullptr;
}

void DatabaseReader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto is_wanted = [this] { return ended_ || is_asked_; };
    if (connection_ && !asked_.wait_for(lock, session_kept_for, is_wanted)) {
      connection_.reset();
    }
    asked_.wait(lock, is_wanted);
    if (ended_) return;
    const auto source = source_;
    lock.unlock();
    auto reading = std::make_shared<const DatabaseReading>(read(source));
    note(*reading);
    lock.lock();
    is_asked_ = false;
    latest_ = std::move(reading);
    read_at_ = steady_now();
    answered_.notify_all();
  }
}

DatabaseReading DatabaseReader::read(const Source& source) {
  DatabaseReading failed;
  // A session that was kept may have ended since the last reading.
  for (bool again = connection_ != nullptr;; again = false) {
    try {
      open(source);
      return read_database(
          *connection_, [&](db::Connection&) { return source.queues; }, source.limits);
    } catch (const db::ConnectionLost& error) {
      failed.error = error.what();
      connection_.reset();
      if (!again) return failed;
    } catch (const Error& error) {
      failed.error = db::reason_of(error);
      return failed;
    } catch (const std::exception& error) {
      failed.error = error.what();
      return failed;
    }
  }
}

void DatabaseReader::open(const Source& source) {
  if (connection_ && connected_to_ == source.conninfo) return;
  connection_.reset();
  connection_ = std::make_unique<db::Connection>(impatient(source.conninfo), "mailroom metrics", limits);
  connected_to_ = source.conninfo;
}

void DatabaseReader::note(const DatabaseReading& reading) {
  if (std::exchange(was_up_, reading.is_up()) == reading.is_up()) return;
  if (reading.is_up()) {
    log_.info("the database can be read for metrics again");
  } else {
    log_.warn("the database cannot be read for metrics", {{"reason", reading.error}});
  }
}

}  // namespace mailroom::metrics
