// The handlers of SIGTERM, SIGINT and SIGHUP, and the pipes by which poll(2) sees a signal.

#include "process/stop_signal.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.hpp"
#include "process/interruption.hpp"

namespace mailroom::process {
namespace {

// Signal handlers use only lock-free atomics and write(2).
std::atomic<int> stop_requests{0};
std::atomic<bool> reload_requested{false};
std::atomic<int> first_stop{0};
std::atomic<int> write_end{-1};
std::atomic<int> stop_write_end{-1};

void wake(const std::atomic<int>& end) {
  const char byte = 0;
  // Ignore a full pipe: its reader wakes anyway.
  [[maybe_unused]] const auto written = ::write(end.load(), &byte, 1);
}

void on_stop(int number) {
  const int saved = errno;
  if (stop_requests.fetch_add(1) > 0) return end_at_once(number);
  first_stop = number;
  wake(write_end);
  wake(stop_write_end);
  errno = saved;
}

void on_reload(int /*number*/) {
  const int saved = errno;
  reload_requested = true;
  wake(write_end);
  errno = saved;
}

void handle(int number, void (*handler)(int), struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, &before);
}

/// Makes a pipe; returns the end to read from. Throws Error(failed).
int make_pipe(std::atomic<int>& write_to) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ExitCode::failed, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  write_to = ends[1];
  return ends[0];
}

}  // namespace

StopSignal::StopSignal() : read_end_(make_pipe(write_end)), stop_end_(make_pipe(stop_write_end)) {
  stop_requests = 0;
  first_stop = 0;
  reload_requested = false;
  handle(SIGTERM, on_stop, before_[0]);
  handle(SIGINT, on_stop, before_[1]);
  handle(SIGHUP, on_reload, before_[2]);
}

StopSignal::~StopSignal() {
  sigaction(SIGTERM, &before_[0], nullptr);
  sigaction(SIGINT, &before_[1], nullptr);
  sigaction(SIGHUP, &before_[2], nullptr);
  close(write_end.exchange(-1));
  close(stop_write_end.exchange(-1));
  close(read_end_);
  close(stop_end_);
}

bool StopSignal::requested() const {
  return stop_requests > 0;
}

int StopSignal::number() const {
  return first_stop;
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
  const auto until = steady_now() + duration;
  while (!requested()) {
    const auto left = std::chrono::ceil<Milliseconds>(until - steady_now()).count();
    if (left <= 0) return;
    pollfd waiting{read_end_, POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(left));
    // SIGHUP wakes it too. The byte of a stop may be drained, since requested() stays true.
    drain();
  }
}

}  // namespace mailroom::process
