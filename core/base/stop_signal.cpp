#include "base/stop_signal.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.hpp"

namespace mailroom {
namespace {

// What a handler may touch: lock-free atomics and write(2).
std::atomic<int> stop_requests{0};
std::atomic<bool> reload_requested{false};
std::atomic<int> write_end{-1};

void wake() {
  const char byte = 0;
  // A full pipe is as good as a byte: the reader wakes either way.
  [[maybe_unused]] const auto written = ::write(write_end.load(), &byte, 1);
}

void on_stop(int number) {
  const int saved = errno;
  if (stop_requests.fetch_add(1) > 0) _exit(128 + number);
  wake();
  errno = saved;
}

void on_reload(int /*number*/) {
  const int saved = errno;
  reload_requested = true;
  wake();
  errno = saved;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ExitCode::failed, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  read_end_ = ends[0];
  stop_requests = 0;
  reload_requested = false;
  write_end = ends[1];
  handle(SIGTERM, on_stop);
  handle(SIGINT, on_stop);
  handle(SIGHUP, on_reload);
}

StopSignal::~StopSignal() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    handle(number, SIG_DFL);
  close(write_end.exchange(-1));
  close(read_end_);
}

bool StopSignal::requested() const {
  return stop_requests > 0;
}

bool StopSignal::take_reload() {
  return reload_requested.exchange(false);
}

void StopSignal::drain() {
  std::array<char, 64> bytes{};
  while (read(read_end_, bytes.data(), bytes.size()) > 0) {
  }
}

void StopSignal::sleep_for(Milliseconds duration) {
  const auto until = std::chrono::steady_clock::now() + duration;
  while (!requested()) {
    const auto left = std::chrono::ceil<Milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return;
    pollfd waiting{read_end_, POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(left));
    // SIGHUP wakes too; the byte of a stop may go, since requested() remembers it.
    drain();
  }
}

}  // namespace mailroom
