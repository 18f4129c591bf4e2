// Connects in a thread, and waits for its end or for the signal, whichever comes first.

#include "process/connect_until_stopped.hpp"

#include <array>
#include <cstdlib>
#include <future>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

#include "base/blocked_signals.hpp"

namespace mailroom {
namespace {

/// What the thread and its owner share.
class Attempt {
 public:
  Attempt() : done_(eventfd(0, EFD_CLOEXEC)) {
    if (done_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  }
  ~Attempt() { close(done_); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  void run(const DatabaseTarget& target, const std::string& purpose) {
    try {
      result_.set_value(std::make_unique<Connection>(target, purpose));
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

  std::unique_ptr<Connection> take() { return result_.get_future().get(); }

 private:
  int done_;
  std::promise<std::unique_ptr<Connection>> result_;
};

/// The handlers of libraries, which exit() would call, take away what a thread that is left may use.
void end_without_handlers() {
  on_exit([](int status, void*) { _exit(status); }, nullptr);
}

}  // namespace

std::unique_ptr<Connection> connect_until_stopped(const StopSignal& signal, const DatabaseTarget& target,
                                                  const std::string& purpose) {
  if (signal.requested()) return std::make_unique<Connection>(target, purpose);
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
  throw ConnectionLost("stopped while it connected to the database");
}

}  // namespace mailroom
