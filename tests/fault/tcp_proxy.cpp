#include "fault/tcp_proxy.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace mailroom::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool send_all(int to, const char* bytes, std::size_t count) {
  while (count > 0) {
    const auto sent = send(to, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

TcpProxy::TcpProxy(int target_port)
    : target_port_(target_port), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), port_(0) {
  auto address = loopback(0);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, any, length) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, any, &length) != 0)
    throw std::runtime_error("the proxy cannot listen");
  port_ = ntohs(address.sin_port);
  accepter_ = std::thread([this] { accept_all(); });
}

TcpProxy::~TcpProxy() {
  ended_ = true;
  accepter_.join();
  for (auto& forwarder : forwarders_)
    forwarder.join();
  close(listener_);
}

void TcpProxy::accept_all() {
  while (!ended_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, 20) != 1) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) forwarders_.emplace_back([this, client] { forward(client); });
  }
}

void TcpProxy::forward(int client) {
  const int generation = generation_;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(target_port_);
  bool open = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  while (open && !ended_ && generation == generation_) {
    if (frozen_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    std::array<pollfd, 2> ends{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    if (poll(ends.data(), ends.size(), 20) < 1 || frozen_) continue;
    if (ends[0].revents != 0) open = pass_on(client, server, false);
    if (open && ends[1].revents != 0) open = pass_on(server, client, true);
  }
  close(client);
  close(server);
}

bool TcpProxy::pass_on(int from, int to, bool is_reply) {
  std::array<char, 4096> buffer;
  const auto read = recv(from, buffer.data(), buffer.size(), 0);
  if (read <= 0) return false;
  auto count = static_cast<std::int64_t>(read);
  bool cut = false;
  if (is_reply && left_ >= 0) {
    const auto left = left_.fetch_sub(count);
    cut = left >= 0 && left <= count;
    if (cut) count = left;
  }
  if (!send_all(to, buffer.data(), static_cast<std::size_t>(count))) return false;
  if (cut) ++cuts_;
  return !cut;
}

}  // namespace mailroom::test
