// A thread waits for the signals: a handler may not ask a server for anything.

#include "process/interruption.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "db/open_sessions.hpp"

namespace mailroom::process {
namespace {

constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
/// Between two requests to end what the server runs, and how long a command that runs nothing has to end.
constexpr Milliseconds interrupt_interval{100};
/// For a command that reports what it has done.
constexpr Milliseconds interrupt_patience{3000};

std::atomic<int> interrupt_number{0};
std::atomic<bool> is_urgent{false};
std::atomic<int> interrupt_fd{-1};

void tell_thread(int number) {
  const int saved = errno;
  int none = 0;
  const int fd = interrupt_fd;
  if (!interrupt_number.compare_exchange_strong(none, number) || fd < 0) _exit(128 + number);
  eventfd_write(fd, 1);
  errno = saved;
}

/// False once `fd` is readable.
bool passes(int fd, Milliseconds time) {
  pollfd awaited{fd, POLLIN, 0};
  return poll(&awaited, 1, static_cast<int>(time.count())) == 0;
}

/// As without a handler, so that a shell sees the signal.
void end_by(int number) {
  std::signal(number, SIG_DFL);
  kill(getpid(), number);
  // Only if the main thread blocks it.
  usleep(100'000);
  _exit(128 + number);
}

}  // namespace

Interruption::Interruption() {
  interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (interrupt_fd < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  interrupt_number = 0;
  for (const int number : signals) {
    struct sigaction present {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = tell_thread;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
  const BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

Interruption::~Interruption() {
  ended_.signal();
  thread_.join();
  for (const int number : signals) {
    struct sigaction present {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler == tell_thread) std::signal(number, SIG_DFL);
  }
  close(interrupt_fd.exchange(-1));
}

void Interruption::watch() {
  std::array<pollfd, 2> awaited{{{ended_.fd(), POLLIN, 0}, {interrupt_fd, POLLIN, 0}}};
  while (poll(awaited.data(), awaited.size(), -1) < 0) {
  }
  if (awaited[0].revents != 0) return;
  const int number = interrupt_number;
  if (is_urgent) {
    db::cancel_running_statements();
    _exit(128 + number);
  }
  db::interrupt_statements(number);
  const auto begun_at = steady_now();
  bool was_busy = false;
  do {
    was_busy = db::cancel_running_statements() > 0 || was_busy;
    if (!passes(ended_.fd(), interrupt_interval)) return;
  } while (was_busy && steady_now() - begun_at < interrupt_patience);
  end_by(number);
}

void end_at_once(int number) {
  is_urgent = true;
  tell_thread(number);
}

}  // namespace mailroom::process
