#pragma once

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// The socket of a service manager, which receives what a service notifies. A thread reads it at once, as a
/// service manager does: sd_notify(3) blocks while net.unix.max_dgram_qlen datagrams wait, by default 10.
class NotifySocket {
 public:
  NotifySocket() : path_(directory_.path() / "notify"), fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path)
      throw std::runtime_error("the path of the socket is too long");
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot bind the notify socket");
    reader_ = std::thread([this] { read(); });
  }
  ~NotifySocket() {
    shutdown(fd_, SHUT_RD);
    reader_.join();
    close(fd_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  const std::string& path() const { return path_; }
  /// Every assignment so far, in order: `READY=1`. A datagram may have several.
  std::vector<std::string> received() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }
  int count(const std::string& assignment) const {
    const auto all = received();
    return static_cast<int>(std::count(all.begin(), all.end(), assignment));
  }
  /// Waits until `assignment` has come `times` times in total.
  bool has(const std::string& assignment, int times = 1) const {
    return eventually([&] { return count(assignment) >= times; });
  }
  /// Waits for an assignment that contains `part`.
  bool has_part(const std::string& part) const {
    return eventually([&] {
      const auto all = received();
      return std::any_of(all.begin(), all.end(),
                         [&](const auto& each) { return each.find(part) != std::string::npos; });
    });
  }

 private:
  /// Ends when the socket is shut down.
  void read() {
    std::string datagram(4096, '\0');
    for (;;) {
      const auto size = recv(fd_, datagram.data(), datagram.size(), 0);
      if (size <= 0) return;
      std::string_view rest(datagram.data(), static_cast<std::size_t>(size));
      const std::lock_guard lock(mutex_);
      while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        received_.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
  }

  TemporaryDirectory directory_;
  std::string path_;
  int fd_;
  mutable std::mutex mutex_;  ///< of the next
  std::vector<std::string> received_;
  std::thread reader_;
};

}  // namespace mailroom::test
