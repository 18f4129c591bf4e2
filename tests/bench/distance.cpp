#include "bench/distance.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <fmt/format.h>
#include <list>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "support/loopback_socket.hpp"

namespace mailroom::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// What was read from `from`, and has not arrived at `to` yet.
struct Direction {
  struct Piece {
    Clock::time_point due;
    std::string bytes;  ///< empty: the end
  };

  int from;
  int to;
  std::deque<Piece> pieces{};
  bool has_ended = false;  ///< nothing more is read
  bool is_over = false;    ///< nothing more is written

  void read(Clock::time_point due) {
    std::array<char, 65'536> bytes{};
    const auto size = recv(from, bytes.data(), bytes.size(), 0);
    pieces.push_back({.due = due, .bytes = {bytes.data(), static_cast<std::size_t>(std::max(size, 0L))}});
    has_ended = size <= 0;
    // A delayed acknowledgement would be a delay of this program.
    const int on = 1;
    setsockopt(from, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }

  void write(Clock::time_point now) {
    for (; !pieces.empty() && pieces.front().due <= now; pieces.pop_front()) {
      const auto& bytes = pieces.front().bytes;
      if (bytes.empty()) shutdown(to, SHUT_WR);
      is_over = bytes.empty();
      send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }
};

struct FarConnection {
  Direction up;
  Direction down;
};

int with_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

/// Until the next piece is due, at most 50 ms.
int milliseconds_to(Clock::time_point due) {
  return static_cast<int>(
      std::clamp(std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count(), 0L, 50L));
}

}  // namespace

Distance::Distance(const std::string& server, std::chrono::milliseconds round_trip)
    : server_port_(std::stoi(server.substr(server.rfind(':') + 1))), one_way_(round_trip / 2) {
  std::tie(listener_, port_) = test::bind_on_loopback();
  if (listen(listener_, SOMAXCONN) != 0) throw std::runtime_error("cannot listen on 127.0.0.1");
  thread_ = std::thread([this] { carry(); });
}

Distance::~Distance() {
  has_ended_ = true;
  thread_.join();
  close(listener_);
}

std::string Distance::address() const {
  return fmt::format("127.0.0.1:{}", port_);
}

void Distance::carry() {
  std::list<FarConnection> connections;
  while (!has_ended_) {
    std::vector<pollfd> awaited{{.fd = listener_, .events = POLLIN, .revents = 0}};
    std::vector<Direction*> directions;
    auto next = Clock::now() + std::chrono::seconds(1);
    for (auto& connection : connections) {
      for (auto* const direction : {&connection.up, &connection.down}) {
        if (!direction->pieces.empty()) next = std::min(next, direction->pieces.front().due);
        if (direction->has_ended) continue;
        awaited.push_back({.fd = direction->from, .events = POLLIN, .revents = 0});
        directions.push_back(direction);
      }
    }
    poll(awaited.data(), awaited.size(), milliseconds_to(next));
    for (std::size_t i = 0; i < directions.size(); ++i) {
      if (awaited[i + 1].revents != 0) directions[i]->read(Clock::now() + one_way_);
    }
    for (auto& connection : connections) {
      connection.up.write(Clock::now());
      connection.down.write(Clock::now());
    }
    std::erase_if(connections, [](const FarConnection& connection) {
      if (!connection.up.is_over || !connection.down.is_over) return false;
      close(connection.up.from);
      close(connection.down.from);
      return true;
    });
    if (awaited[0].revents == 0) continue;
    const int client = with_no_delay(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    const int server = with_no_delay(test::connect_on_loopback(server_port_));
    connections.push_back({.up = {.from = client, .to = server}, .down = {.from = server, .to = client}});
  }
  for (const auto& connection : connections) {
    close(connection.up.from);
    close(connection.down.from);
  }
}

}  // namespace mailroom::bench
