// Waits with ppoll(2) for a socket, a signal, and a reader that goes away.

#include "process/environment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>

#include "base/error.hpp"

namespace mailroom::process {

void SystemEnvironment::wait(int socket, TimePoint until) {
  constexpr std::chrono::nanoseconds longest = std::chrono::hours(1);
  const auto left = std::clamp<std::chrono::nanoseconds>(until - now(), {}, longest).count();
  const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  // No events are requested for the peer: poll(2) always reports POLLERR, when its reader has gone.
  std::array<pollfd, 3> watched{{{socket, POLLIN, 0}, {signal_.fd(), POLLIN, 0}, {peer_, 0, 0}}};
  if (ppoll(watched.data(), watched.size(), &timeout, nullptr) < 0 && errno != EINTR) {
    throw Error(ExitCode::failed, std::string("cannot wait: ") + std::strerror(errno));
  }
  signal_.drain();
  if ((watched[2].revents & (POLLERR | POLLNVAL)) != 0) throw ReaderGone("the output has been closed");
}

void SystemEnvironment::note_wait(Awaited awaited) {
  wait_.reset();
  if (awaited != Awaited::nothing) wait_.emplace(watcher_, awaited);
}

}  // namespace mailroom::process
