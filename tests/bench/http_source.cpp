// One thread for all connections: the client is to cost little beside what it measures.

#include "bench/http_source.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "support/loopback_socket.hpp"

namespace mailroom::bench {
namespace {

constexpr int patience_ms = 60'000;

class Connection {
 public:
  explicit Connection(int port) : wire_(test::connect_on_loopback(port)) {}
  ~Connection() { close(wire_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int wire() const { return wire_; }

  void ask(const std::string& request) {
    heard_.clear();
    for (std::size_t sent = 0; sent < request.size();) {
      const auto more = send(wire_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) throw std::runtime_error("a connection has ended");
      sent += static_cast<std::size_t>(more);
    }
  }

  /// Takes what has come. True once the answer is whole.
  bool has_answer() {
    char piece[4096];
    const auto size = recv(wire_, piece, sizeof piece, 0);
    if (size <= 0) throw std::runtime_error("a connection has ended without an answer");
    heard_.append(piece, static_cast<std::size_t>(size));
    const auto head = heard_.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const auto length = heard_.find("Content-Length: ");
    if (!heard_.starts_with("HTTP/1.1 200 ") || length > head)
      throw std::runtime_error("it answers " + heard_);
    return heard_.size() == head + 4 + std::stoul(heard_.substr(length + 16));
  }

 private:
  int wire_;
  std::string heard_;
};

std::string request_of(const Posting& posting) {
  const auto body =
      fmt::format(R"({{"from":"shop@app.example","to":["ada@bench.example"],"subject":"hello","text":"{}"}})",
                  std::string(static_cast<std::size_t>(posting.bytes), 'x'));
  return fmt::format(
      "POST /emails HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      posting.key, body.size(), body);
}

}  // namespace

void post_mails(const Posting& posting) {
  const auto request = request_of(posting);
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<pollfd> awaited;
  std::int64_t asked = 0;
  for (; asked < std::min<std::int64_t>(posting.connections, posting.mails); ++asked) {
    connections.push_back(std::make_unique<Connection>(posting.port));
    connections.back()->ask(request);
    awaited.push_back({connections.back()->wire(), POLLIN, 0});
  }
  for (std::int64_t answered = 0; answered < posting.mails;) {
    if (poll(awaited.data(), awaited.size(), patience_ms) <= 0)
      throw std::runtime_error("no answer for a minute");
    for (std::size_t i = 0; i < awaited.size(); ++i) {
      if (awaited[i].revents == 0 || !connections[i]->has_answer()) continue;
      ++answered;
      if (asked < posting.mails) {
        connections[i]->ask(request);
        ++asked;
      } else {
        awaited[i].fd = -1;
      }
    }
  }
}

}  // namespace mailroom::bench
