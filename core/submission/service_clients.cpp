// The clients of the service: who is let in, who has been too slow, and what is of each role and address.

#include <algorithm>
#include <array>
#include <netinet/tcp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "submission/service.hpp"

namespace mailroom::submission {
namespace {

/// The user at the other end of a unix socket; empty if he has no name.
std::string user_of_peer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> memory{};
  getpwuid_r(peer.uid, &entry, memory.data(), memory.size(), &found);
  return found == nullptr ? std::string() : std::string(found->pw_name);
}

void say_and_close(int fd, const Reply& reply) {
  const auto line = reply.line();
  static_cast<void>(::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  ::close(fd);
}

}  // namespace

RoleTerms Service::terms_of(const std::string& role) const {
  const auto found = options_.roles.find(role);
  return found == options_.roles.end() ? options_.other_roles : found->second;
}

bool Service::is_over_limit(const std::string& role) const {
  const auto found = over_limit_until_.find(role);
  return found != over_limit_until_.end() && steady_now() < found->second;
}

bool Service::is_full(const std::string& peer) const {
  const auto found = per_address_.find(peer);
  return clients_.size() >= options_.connections || (peer != local_client && found != per_address_.end() &&
                                                     found->second >= options_.connections_per_address);
}

bool Service::is_role_full(const std::string& role) const {
  const auto most = terms_of(role).connections;
  return most > 0 && static_cast<std::size_t>(std::ranges::count_if(clients_, [&](const auto& each) {
                       return each.second->conversation().role() == role;
                     })) >= most;
}

bool Service::has_writer(const std::string& role) const {
  const std::lock_guard lock(mutex_);
  return writers_.contains(role);
}

void Service::accept(const Door& door, int fd, const std::string& peer) {
  if (is_full(peer)) return say_and_close(fd, replies::too_many_connections);
  if (peer != local_client) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  Client client{.peer = peer,
                .is_secure = door.is_implicit_tls,
                .needs_login = door.role.empty(),
                .role = door.role == "*" ? user_of_peer(fd) : door.role};
  if (!client.needs_login && client.role.empty()) return say_and_close(fd, replies::nobody);
  if (!client.needs_login && is_role_full(client.role)) return say_and_close(fd, replies::too_many_of_role);
  ++per_address_[peer];
  const auto id = next_id_++;
  auto connection = std::make_unique<ClientConnection>(*this, base_, id, fd, std::move(client),
                                                       door.is_implicit_tls ? tls_.get() : nullptr);
  if (connection->is_broken()) return leave(peer);
  clients_[id] = std::move(connection);
}

void Service::let_in(int fd, const std::string& role) {
  accept({.role = role}, fd, std::string(local_client));
}

void Service::end_slow_clients(TimePoint now) {
  std::vector<std::uint64_t> late;
  for (const auto& [id, client] : clients_)
    if (client->is_overdue(now)) late.push_back(id);
  for (const auto id : late) {
    auto& client = *clients_.at(id);
    if (client.is_closing() || client.is_handshaking()) {
      drop(id);
      continue;
    }
    client.conversation().refuse(replies::too_slow, now);
    client.flush();
  }
}

void Service::drop(std::uint64_t id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  if (!found->second->is_closing()) leave(found->second->peer());
  clients_.erase(found);
}

void Service::leave(const std::string& peer) {
  const auto address = per_address_.find(peer);
  if (address != per_address_.end() && --address->second == 0) per_address_.erase(address);
}

bool Service::hold(std::ptrdiff_t change) {
  held_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(held_) + change);
  return held_ <= options_.memory;
}

}  // namespace mailroom::submission
