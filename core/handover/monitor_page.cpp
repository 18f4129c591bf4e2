#include "handover/monitor_page.hpp"

#include <array>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace mailroom {
namespace {

constexpr timeval monitor_limit{.tv_sec = 2, .tv_usec = 0};
constexpr std::size_t largest_page = 1'000'000;

struct MonitorSocket {
  int fd = -1;
  MonitorSocket() = default;
  explicit MonitorSocket(int descriptor) : fd(descriptor) {}
  ~MonitorSocket() {
    if (fd >= 0) close(fd);
  }
  MonitorSocket(const MonitorSocket&) = delete;
  MonitorSocket& operator=(const MonitorSocket&) = delete;
};

/// A connected socket, or -1.
int monitor_connect(const BrokerServer& server) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &wanted, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (const auto* each = found; each != nullptr; each = each->ai_next) {
    const int fd = socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (fd < 0) continue;
    // It limits connect(2) too.
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &monitor_limit, sizeof monitor_limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &monitor_limit, sizeof monitor_limit);
    if (connect(fd, each->ai_addr, each->ai_addrlen) == 0) return fd;
    close(fd);
  }
  return -1;
}

/// What comes until `end`, or until the other side closes.
std::string monitor_read(int fd, std::string_view end) {
  std::string text;
  std::array<char, 4096> part{};
  while (text.size() < largest_page && (end.empty() || text.find(end) == std::string::npos)) {
    const auto size = recv(fd, part.data(), part.size(), 0);
    if (size <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

std::string read_nats_greeting(const BrokerServer& server) {
  const MonitorSocket connection(monitor_connect(server));
  if (connection.fd < 0) return {};
  const auto text = monitor_read(connection.fd, "\r\n");
  constexpr std::string_view before = "INFO ";
  return text.starts_with(before) ? text.substr(before.size(), text.find("\r\n") - before.size())
                                  : std::string();
}

std::string read_monitor_page(const BrokerServer& server, const std::string& path) {
  const MonitorSocket connection(monitor_connect(server));
  if (connection.fd < 0) return {};
  const auto request = fmt::format("GET {} HTTP/1.0\r\nHost: {}\r\n\r\n", path, server.address());
  if (send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return {};
  const auto text = monitor_read(connection.fd, {});
  const auto body = text.find("\r\n\r\n");
  return body == std::string::npos ? std::string() : text.substr(body + 4);
}

}  // namespace mailroom
