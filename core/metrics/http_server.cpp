// libmicrohttpd reads the requests. It takes a socket that listens, so that the messages about addresses are
// ours.

#include "metrics/http_server.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"

namespace mailroom {
namespace {

/// `[::1]:9464` and `localhost:9464` without the port, in small letters.
std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return lower_case(host.substr(1, host.find(']') - 1));
  return lower_case(host.substr(0, host.find(':')));
}

/// True if `host` names this host's loopback, or is empty. A web page whose name leads to a loopback address
/// sends another one.
bool is_loopback_name(const std::string& host) {
  if (host.empty() || host == "localhost" || host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

MHD_Result add_host(void* hosts, MHD_ValueKind, const char* name, const char* value) {
  if (lower_case(name) == "host" && value != nullptr)
    static_cast<std::vector<std::string>*>(hosts)->push_back(host_name(trimmed(value)));
  return MHD_YES;
}

MHD_Result respond(MHD_Connection* connection, HttpPage page) {
  auto* response = MHD_create_response_from_buffer(page.text.size(), page.text.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", page.type);
  MHD_add_response_header(response, "Cache-Control", "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Connection", "close");
  if (page.status == 405) MHD_add_response_header(response, "Allow", "GET, HEAD");
  const auto queued = MHD_queue_response(connection, static_cast<unsigned>(page.status), response);
  MHD_destroy_response(response);
  return queued;
}

/// Answers a request when its head has come; a body is not read.
MHD_Result answer_request(void* server, MHD_Connection* connection, const char* path, const char* method,
                          const char*, const char*, std::size_t*, void**) noexcept {
  std::vector<std::string> hosts;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, add_host, &hosts);
  return respond(connection, static_cast<const HttpServer*>(server)->answer(method, path, hosts));
}

/// An address of any kind, as the system calls take it.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

template <typename Kind>
SocketAddress as_bytes(const Kind& kind) {
  SocketAddress address;
  std::memcpy(&address.bytes, &kind, sizeof kind);
  address.size = sizeof kind;
  return address;
}

SocketAddress socket_address(const ListenAddress& address) {
  if (address.is_unix()) {
    sockaddr_un named{};
    named.sun_family = AF_UNIX;
    address.path.copy(named.sun_path, sizeof named.sun_path - 1);
    return as_bytes(named);
  }
  const auto port = htons(static_cast<std::uint16_t>(address.port));
  sockaddr_in in{};
  if (inet_pton(AF_INET, address.host.c_str(), &in.sin_addr) == 1) {
    in.sin_family = AF_INET;
    in.sin_port = port;
    return as_bytes(in);
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = port;
  inet_pton(AF_INET6, address.host.c_str(), &in6.sin6_addr);
  return as_bytes(in6);
}

int chosen_port(int fd) {
  SocketAddress address;
  address.size = sizeof address.bytes;
  getsockname(fd, address.get(), &address.size);
  if (address.bytes.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.bytes)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.bytes)->sin_port);
}

std::string hint_for(int error, const ListenAddress& address) {
  if (address.is_unix()) {
    return error == EACCES ? "this user must be able to write into the directory"
                           : "the directory must exist, and this user must be able to write into it";
  }
  if (error == EADDRNOTAVAIL)
    return "the address is none of this host; 127.0.0.1 and [::1] are, and 0.0.0.0 stands for all";
  if (error == EACCES) return "a port below 1024 needs a privilege; 9464 needs none";
  return "--metrics and metrics.listen name the address";
}

[[noreturn]] void refuse_address(int error, const ListenAddress& address) {
  throw Error(ExitCode::configuration,
              fmt::format("cannot serve metrics at {}: {}", address.text(), std::strerror(error)),
              hint_for(error, address));
}

[[noreturn]] void refuse_as_used(const ListenAddress& address) {
  throw Error(ExitCode::locked,
              fmt::format("cannot serve metrics at {}: another process listens there", address.text()),
              address.is_unix() ? "each consumer needs a socket of its own"
                                : "each consumer needs a port of its own; ss -ltnp shows who has this one");
}

/// True if somebody listens at a unix socket.
bool is_answered(const SocketAddress& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool answered = fd >= 0 && (connect(fd, address.get(), address.size) == 0 || errno == EAGAIN);
  if (fd >= 0) close(fd);
  return answered;
}

}  // namespace

HttpServer::HttpServer(const ListenAddress& address, HttpPages pages)
    : socket_(address),
      pages_(std::move(pages)),
      is_loopback_(!address.is_unix() && is_loopback_name(address.host)) {
  const BlockedSignals blocked;
  daemon_ = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC, 0,
                             nullptr, nullptr, answer_request, this, MHD_OPTION_LISTEN_SOCKET, socket_.fd(),
                             MHD_OPTION_CONNECTION_LIMIT, most_clients, MHD_OPTION_CONNECTION_TIMEOUT,
                             static_cast<unsigned>(patience.count()), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                             longest_head, MHD_OPTION_END);
  if (daemon_ == nullptr) throw Error(ExitCode::failed, "cannot start the server of the metrics");
}

HttpServer::~HttpServer() {
  MHD_quiesce_daemon(daemon_);  // otherwise MHD_stop_daemon closes the socket
  MHD_stop_daemon(daemon_);
}

HttpPage HttpServer::answer(const std::string& method, const std::string& path,
                            const std::vector<std::string>& hosts) const {
  if (method != "GET" && method != "HEAD") return {.status = 405, .text = "only GET and HEAD are answered\n"};
  if (is_loopback_ && !std::all_of(hosts.begin(), hosts.end(), is_loopback_name))
    return {.status = 403, .text = "this address serves only this host\n"};
  return pages_(path);
}

ListeningSocket::ListeningSocket(const ListenAddress& address) : address_(address) {
  const int family = socket_address(address_).bytes.ss_family;
  fd_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) refuse_address(errno, address_);
  try {
    address_.is_unix() ? listen_at_path() : listen_at_port();
    if (listen(fd_, SOMAXCONN) != 0)
      errno == EADDRINUSE ? refuse_as_used(address_) : refuse_address(errno, address_);
  } catch (...) {
    close(fd_);
    throw;
  }
}

ListeningSocket::~ListeningSocket() {
  if (address_.is_unix()) unlink(address_.path.c_str());
  close(fd_);
}

void ListeningSocket::listen_at_path() {
  const auto bytes = socket_address(address_);
  struct stat file {};
  if (lstat(address_.path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) {
      throw Error(ExitCode::configuration,
                  fmt::format("cannot serve metrics at {}: the file exists, and is no socket", address_.path),
                  "name another path, or remove the file");
    }
    if (is_answered(bytes)) refuse_as_used(address_);
    unlink(address_.path.c_str());
  }
  if (bind(fd_, bytes.get(), bytes.size) != 0) refuse_address(errno, address_);
}

void ListeningSocket::listen_at_port() {
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto bytes = socket_address(address_);
  if (bind(fd_, bytes.get(), bytes.size) != 0)
    errno == EADDRINUSE ? refuse_as_used(address_) : refuse_address(errno, address_);
  if (address_.port == 0) address_.port = chosen_port(fd_);
}

}  // namespace mailroom
