// Sleeps until a stop is requested, then checks at intervals whether a wait takes too long.

#include "process/stop_watcher.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <future>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"
#include "base/threads.hpp"
#include "db/connection.hpp"

namespace mailroom::process {
namespace {

constexpr Milliseconds interval{20};

/// What the thread and its owner share.
class Attempt {
 public:
  Attempt() : done_(eventfd(0, EFD_CLOEXEC)) {
    if (done_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  }
  ~Attempt() { close(done_); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  void run(const db::DatabaseTarget& target, const std::string& purpose) {
    try {
      result_.set_value(std::make_unique<db::Connection>(target, purpose));
    } catch (...) {
      result_.set_exception(std::current_exception());
    }
    eventfd_write(done_, 1);
  }

  /// False if `stop` is readable first.
  bool ends_before(int stop) const {
    std::array<pollfd, 2> awaited{{{done_, POLLIN, 0}, {stop, POLLIN, 0}}};
    while (poll(awaited.data(), awaited.size(), -1) < 0) {
    }
    return awaited[0].revents != 0;
  }

  std::unique_ptr<db::Connection> take() { return result_.get_future().get(); }

 private:
  int done_;
  std::promise<std::unique_ptr<db::Connection>> result_;
};

/// The handlers of libraries, which exit() would call, take away what a thread that is left may use.
void end_without_handlers() {
  on_exit([](int status, void*) { _exit(status); }, nullptr);
}

}  // namespace

StopWatcher::StopWatcher(const StopSignal& signal, Log& log, std::string reader)
    : signal_(signal), log_(log), reader_(std::move(reader)), end_(eventfd(0, EFD_CLOEXEC)) {
  if (end_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  const BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

StopWatcher::~StopWatcher() {
  eventfd_write(end_, 1);
  thread_.join();
  close(end_);
}

void StopWatcher::watch() {
  // First waits for a stop, then attends to it at intervals.
  std::array<pollfd, 2> awaited{{{end_, POLLIN, 0}, {signal_.stop_fd(), POLLIN, 0}}};
  for (bool asked = false;; asked = true) {
    while (poll(awaited.data(), asked ? 1 : 2, asked ? static_cast<int>(interval.count()) : -1) < 0) {
    }
    if (awaited[0].revents != 0) return;
    const std::lock_guard lock(mutex_);
    if (!asked) asked_at_ = steady_now();
    attend();
  }
}

void StopWatcher::attend() {
  if (wait_ == nullptr || steady_now() - std::max(wait_->since_, asked_at_) < wait_->patience_) return;
  if (told_ != wait_->awaited_) {
    told_ = wait_->awaited_;
    log_.info(fmt::format("stopping: waiting for {}; signal again to stop at once",
                          told_ == Awaited::reader ? reader_ : "the database"));
  }
  if (wait_->running_ == nullptr || wait_->cancelled_) return;
  wait_->cancelled_ = true;
  try {
    wait_->running_->cancel();
  } catch (const Error& error) {
    // The statement continues until the server or a second signal ends it.
    log_.warn("cannot cancel the running statement", {{"reason", error.what()}});
  }
}

void StopWatcher::name_reader(std::string reader) {
  const std::lock_guard lock(mutex_);
  reader_ = std::move(reader);
}

Awaited StopWatcher::awaited() const {
  const std::lock_guard lock(mutex_);
  return wait_ == nullptr ? Awaited::nothing : wait_->awaited_;
}

StopWatcher::Wait::Wait(StopWatcher* watcher, Awaited awaited, db::Connection* running, Milliseconds patience)
    : watcher_(watcher), awaited_(awaited), running_(running), patience_(patience), since_(steady_now()) {
  if (watcher_ == nullptr) return;
  const std::lock_guard lock(watcher_->mutex_);
  outer_ = std::exchange(watcher_->wait_, this);
}

StopWatcher::Wait::~Wait() {
  if (watcher_ == nullptr) return;
  const std::lock_guard lock(watcher_->mutex_);
  watcher_->wait_ = outer_;
}

bool StopWatcher::Wait::cancelled() const {
  if (watcher_ == nullptr) return false;
  const std::lock_guard lock(watcher_->mutex_);
  return cancelled_;
}

std::unique_ptr<db::Connection> connect_until_stopped(const StopSignal& signal,
                                                      const db::DatabaseTarget& target,
                                                      const std::string& purpose) {
  if (signal.requested()) return std::make_unique<db::Connection>(target, purpose);
  const auto attempt = std::make_shared<Attempt>();
  std::thread thread;
  {
    const BlockedSignals blocked;
    thread = std::thread([attempt, target, purpose] { attempt->run(target, purpose); });
  }
  if (attempt->ends_before(signal.stop_fd())) {
    thread.join();
    return attempt->take();
  }
  thread.detach();
  end_without_handlers();
  throw db::ConnectionLost("stopped while it connected to the database");
}

}  // namespace mailroom::process
