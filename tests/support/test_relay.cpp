#include "support/test_relay.hpp"

#include <array>
#include <csignal>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "support/loopback_socket.hpp"
#include "support/relay_conversation.hpp"

namespace mailroom::test {
namespace {

/// The threads of the server handle no signals, and OpenSSL's writes to a client that has gone raise none.
void hold_signals_back() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

/// Bounds a read of OpenSSL that the stop of the server cannot end.
void prepare_client(int socket) {
  const timeval longest{.tv_sec = 10, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

TestRelay::TestRelay(Options options) : options_(std::move(options)), stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!options_.play) options_.play = [](const RelayMoment&) { return RelayAnswer{}; };
  std::tie(listener_, port_) = bind_on_loopback(options_.port_on_second_address);
  if (listen(listener_, SOMAXCONN) != 0) throw std::runtime_error("cannot listen on 127.0.0.1");
  acceptor_ = std::thread([this] { accept_clients(); });
}

TestRelay::~TestRelay() {
  eventfd_write(stop_, 1);
  acceptor_.join();
  for (auto& client : clients_)
    client.join();
  close(listener_);
  close(stop_);
}

void TestRelay::accept_clients() {
  hold_signals_back();
  for (;;) {
    std::array<pollfd, 2> awaited{{{listener_, POLLIN, 0}, {stop_, POLLIN, 0}}};
    poll(awaited.data(), awaited.size(), -1);
    if (awaited[1].revents != 0) return;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    prepare_client(client);
    const int number = ++connections_;
    clients_.emplace_back([this, client, number] { RelayConversation(*this, client, number).hold(); });
  }
}

std::string TestRelay::url(const std::string& user) const {
  return fmt::format("{}://{}{}127.0.0.1:{}", options_.implicit_tls ? "smtps" : "smtp", user,
                     user.empty() ? "" : "@", port_);
}

std::vector<TakenMail> TestRelay::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

std::vector<std::string> TestRelay::commands() const {
  const std::lock_guard lock(mutex_);
  return commands_;
}

std::function<RelayAnswer(const RelayMoment&)> TestRelay::at(RelayStep step, RelayAnswer answer) {
  return [step, answer = std::move(answer)](const RelayMoment& moment) {
    return moment.step == step ? answer : RelayAnswer{};
  };
}

std::function<RelayAnswer(const RelayMoment&)> TestRelay::once(RelayStep step, RelayAnswer answer) {
  return [step, answer = std::move(answer)](const RelayMoment& moment) {
    return moment.step == step && moment.connection == 1 && moment.mail <= 1 ? answer : RelayAnswer{};
  };
}

}  // namespace mailroom::test
