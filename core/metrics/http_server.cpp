// One poll loop for all clients. On loopback it refuses foreign host names, against DNS rebinding.

#include "metrics/http_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "base/blocked_signals.hpp"
#include "base/error.hpp"

namespace mailroom {
namespace {

const char* status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string response_of(const HttpPage& page, bool is_head) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n{}\r\n{}",
      page.status, status_text(page.status), page.type, page.text.size(),
      page.status == 405 ? "Allow: GET, HEAD\r\n" : "", is_head ? "" : page.text);
}

}  // namespace

struct HttpServer::Client {
  enum class State { reading, waiting, writing, finished };

  explicit Client(int socket, TimePoint now) : fd(socket), deadline(now + patience) {}
  ~Client() { close(fd); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void respond(const HttpPage& page, bool is_head) {
    bytes = response_of(page, is_head);
    sent = 0;
    state = State::writing;
    deadline = steady_now() + patience;
  }

  int fd;
  TimePoint deadline;
  State state = State::reading;
  HttpRequest request{};
  std::string bytes{};  ///< the request, then the response
  std::size_t sent = 0;
};

HttpServer::HttpServer(const ListenAddress& address, HttpPages& pages)
    : socket_(address),
      pages_(pages),
      is_loopback_(!address.is_unix() && is_loopback_name(address.host)),
      end_(eventfd(0, EFD_CLOEXEC)) {
  if (end_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  const BlockedSignals blocked;
  thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  eventfd_write(end_, 1);
  thread_.join();
  clients_.clear();
  close(end_);
}

void HttpServer::serve() {
  while (wait()) {
    clients_.remove_if([](const Client& client) { return client.state == Client::State::finished; });
  }
}

bool HttpServer::wait() {
  std::vector<pollfd> fds{{end_, POLLIN, 0}, {pages_.fd(), POLLIN, 0}, {socket_.fd(), POLLIN, 0}};
  auto until = TimePoint::max();
  for (const auto& client : clients_) {
    const bool writes = client.state == Client::State::writing;
    const bool waits = client.state == Client::State::waiting;
    fds.push_back({client.fd, static_cast<short>(waits ? 0 : writes ? POLLOUT : POLLIN), 0});
    until = std::min(until, client.deadline);
  }
  const auto left = std::chrono::ceil<Milliseconds>(until - steady_now()).count();
  const int timeout = clients_.empty() ? -1 : static_cast<int>(std::max<std::int64_t>(left, 0));
  if (poll(fds.data(), fds.size(), timeout) < 0) return true;
  if (fds[0].revents != 0) return false;
  const bool is_ready = fds[1].revents != 0;
  if (is_ready) pages_.take_ready();
  const auto now = steady_now();
  std::size_t i = 3;
  for (auto& client : clients_)
    work_on(client, fds[i++].revents, is_ready, now);
  if (fds[2].revents != 0) admit();
  return true;
}

void HttpServer::admit() {
  for (;;) {
    const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
      // The connection stays, and would wake this thread again at once.
      std::this_thread::sleep_for(Milliseconds(50));
      if (!clients_.empty()) clients_.pop_front();
    }
    if (fd < 0) return;
    // Whoever is slow at sending a request has come first.
    if (clients_.size() >= most_clients) clients_.pop_front();
    clients_.emplace_back(fd, steady_now());
  }
}

void HttpServer::work_on(Client& client, short events, bool is_ready, TimePoint now) {
  using State = Client::State;
  const bool is_late = now >= client.deadline;
  if (client.state == State::waiting) {
    if ((events & (POLLERR | POLLHUP)) != 0) {
      client.state = State::finished;
    } else if (is_ready || is_late) {
      answer(client, is_late);
    }
  } else if (events != 0) {
    client.state == State::reading ? read(client) : write(client);
  } else if (is_late) {
    client.state = State::finished;
  }
}

void HttpServer::read(Client& client) {
  std::array<char, 4096> bytes{};
  const auto count = recv(client.fd, bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    client.state = Client::State::finished;
    return;
  }
  client.bytes.append(bytes.data(), static_cast<std::size_t>(count));
  const auto parsed = parse_http_request(client.bytes);
  if (!parsed) return;
  if (const auto* refusal = std::get_if<HttpRefusal>(&*parsed)) {
    client.respond({.status = refusal->status, .text = refusal->text + "\n"}, false);
    return write(client);
  }
  client.request = std::get<HttpRequest>(*parsed);
  if (is_loopback_ && !is_loopback_name(client.request.host)) {
    client.respond({.status = 403, .text = "this address serves only this host\n"}, false);
    return write(client);
  }
  client.state = Client::State::waiting;
  client.deadline = steady_now() + page_patience;
  answer(client, false);
}

void HttpServer::answer(Client& client, bool last_chance) {
  const auto page = pages_.page(client.request.path, last_chance);
  if (!page) return;
  client.respond(*page, client.request.is_head);
  write(client);
}

void HttpServer::write(Client& client) {
  const auto left = client.bytes.size() - client.sent;
  const auto count = send(client.fd, client.bytes.data() + client.sent, left, MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) client.sent += static_cast<std::size_t>(count);
  if (count <= 0 || client.sent == client.bytes.size()) client.state = Client::State::finished;
}

}  // namespace mailroom
