// Sockets are told apart by their addresses, so that neither the unit nor the setting must keep an order.

#include "cmd/submission/doors.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::cmd {
namespace {

constexpr int first_passed_socket = 3;  ///< sd_listen_fds(3)

config::ListenAddress address_of(int fd) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bytes), &size);
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (bytes.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(bytes);
    inet_ntop(AF_INET, &in.sin_addr, host.data(), host.size());
    return {.host = host.data(), .port = ntohs(in.sin_port)};
  }
  if (bytes.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(bytes);
    inet_ntop(AF_INET6, &in6.sin6_addr, host.data(), host.size());
    return {.host = host.data(), .port = ntohs(in6.sin6_port)};
  }
  return {.path = reinterpret_cast<const sockaddr_un&>(bytes).sun_path};
}

/// Those that the service manager has passed, which this process alone uses from now on.
std::vector<submission::Door> passed_doors() {
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || parse_number<int>(pid) != getpid()) return {};
  std::vector<submission::Door> doors;
  const auto end = first_passed_socket + parse_number<int>(count).value_or(0);
  for (int fd = first_passed_socket; fd < end; ++fd) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    doors.push_back(submission::parse_door(address_of(fd).text()));
    doors.back().fd = fd;
  }
  return doors;
}

/// The socket of the door among those that were passed, which it leaves.
int take_passed(std::vector<submission::Door>& passed, const submission::Door& door) {
  const auto found =
      std::ranges::find_if(passed, [&](const auto& each) { return each.address == door.address; });
  if (found == passed.end()) return -1;
  const int fd = found->fd;
  passed.erase(found);
  return fd;
}

bool is_loopback(const config::ListenAddress& address) {
  return address.is_unix() || address.host.starts_with("127.") || address.host == "::1";
}

/// As systemd makes them: connecting to a unix socket takes the right to write, whatever the umask. Its
/// directory says who gets there.
void open_to_all(const config::ListenAddress& address) {
  if (address.is_unix() && chmod(address.path.c_str(), 0666) != 0)
    throw Error(ExitCode::configuration,
                fmt::format("cannot let all users connect to {}: {}", address.path, std::strerror(errno)));
}

/// Where requests over HTTP are taken; nullopt: nowhere.
std::optional<OpenHttp> open_http(const config::Settings& settings, std::vector<submission::Door>& passed,
                                  std::vector<std::unique_ptr<process::ListeningSocket>>& sockets) {
  const auto& text = settings.submission.http;
  if (text.empty()) return std::nullopt;
  const auto address = config::parse_listen_address(text);
  if (!address || address->path.size() > config::longest_socket_path)
    throw Error(ExitCode::configuration,
                fmt::format("submission.http is '{}', which is no address of this host", shown_text(text)),
                "write 127.0.0.1:8587, or the path of a unix socket");
  OpenHttp http{.address = *address, .is_secure = !is_loopback(*address)};
  if (http.is_secure && settings.submission.certificate.empty())
    throw Error(
        ExitCode::configuration,
        fmt::format(
            "submission.http is {}, where others read keys and mails, and submission.certificate is not set",
            address->text()),
        "set submission.certificate and submission.key, or listen at a loopback address behind a proxy");
  http.fd = take_passed(passed, {.address = *address});
  if (http.fd < 0) {
    sockets.push_back(std::make_unique<process::ListeningSocket>(
        *address, process::ListenWords{.subject = "requests",
                                       .owner = "service",
                                       .named_by = "--http and submission.http name",
                                       .port = "8587"}));
    http.fd = sockets.back()->fd();
    http.address = sockets.back()->address();
    // Who may do what, keys say.
    open_to_all(http.address);
  }
  return http;
}

}  // namespace

OpenDoors open_doors(const config::Settings& settings) {
  auto passed = passed_doors();
  OpenDoors open;
  open.http = open_http(settings, passed, open.sockets);
  if (settings.submission.listen.empty()) {
    if (passed.empty() && !open.http) config::require_keys({"submission.listen"}, settings);
    open.doors = std::exchange(passed, {});
  }
  for (const auto& text : settings.submission.listen) {
    auto door = submission::parse_door(text);
    door.fd = take_passed(passed, door);
    if (door.fd < 0) {
      open.sockets.push_back(std::make_unique<process::ListeningSocket>(
          door.address, process::ListenWords{.subject = "mails",
                                             .owner = "service",
                                             .named_by = "--listen and submission.listen name",
                                             .port = "2587"}));
      door.fd = open.sockets.back()->fd();
      door.address = open.sockets.back()->address();
      open_to_all(door.address);
    }
    open.doors.push_back(std::move(door));
  }
  if (!passed.empty())
    throw Error(ExitCode::configuration,
                fmt::format("the service manager listens at {}, which submission.listen does not name",
                            passed.front().address.text()),
                "name it there too, or leave submission.listen out");
  const bool needs_tls = std::ranges::any_of(
      open.doors, [](const auto& door) { return door.role.empty() || door.is_implicit_tls; });
  if (needs_tls && settings.submission.certificate.empty())
    throw Error(ExitCode::configuration, "submission.certificate is not set, and a login needs TLS",
                "set submission.certificate and submission.key, or name a role at each loopback address: "
                "127.0.0.1:25=ROLE");
  if (!settings.submission.certificate.empty()) config::require_keys({"submission.key"}, settings);
  return open;
}

}  // namespace mailroom::cmd
