// The way into RabbitMQ: servers, TLS and login, and questions about exchanges and queues.
#pragma once

// librabbitmq, whose headers have a directory of their own since 0.12; the old names then only warn.

#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/ssl_socket.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#endif

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "carriers/broker.hpp"
#include "config/settings.hpp"

namespace mailroom::amqp {

/// Where a RabbitMQ cluster is, and as whom to log in.
struct AmqpTarget {
  config::ServerUrl url{};
  bool has_tls = false;
  std::string user{};
  std::string password{};
  std::string ca_file{};  ///< PEM file of the trusted certificates
  std::string vhost{};
  Milliseconds timeout{};  ///< after which what was sent must be taken by the server's kernel
};

/// Throws Error(configuration).
AmqpTarget read_amqp_target(const config::Settings& settings);

struct AmqpConnectionEnd {
  void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
};

/// What the server refuses, or what has gone wrong: a code of AMQP, or 0, and a text.
struct AmqpRefusal {
  int code = 0;
  std::string text{};
};

/// A connection with one channel on which the server confirms what it has stored. For one thread.
class AmqpConnection {
 public:
  static constexpr amqp_channel_t channel = 1;

  /// Null, and `failure` says why, if the server does not let mailroom in. Takes at most some seconds.
  static std::unique_ptr<AmqpConnection> open(const AmqpTarget& target, const config::ServerAddress& server,
                                              carriers::BrokerFailure& failure);
  /// That of the first server that lets mailroom in; otherwise what the first says that says more than that
  /// it cannot be reached.
  static std::unique_ptr<AmqpConnection> open_any(const AmqpTarget& target, carriers::BrokerFailure& failure);
  /// Says goodbye, and does not wait for the answer.
  ~AmqpConnection();
  AmqpConnection(const AmqpConnection&) = delete;
  AmqpConnection& operator=(const AmqpConnection&) = delete;

  amqp_connection_state_t get() const { return state_.get(); }
  int socket() const { return amqp_get_sockfd(state_.get()); }
  const std::string& server() const { return server_; }
  /// `RabbitMQ 3.10.8`
  std::string product() const;

  /// Whether it exists; a channel of its own.
  AmqpRefusal find_exchange(const std::string& name);
  AmqpRefusal find_queue(const std::string& name);
  /// Whether the queue, which exists, is a durable quorum queue: the server compares.
  AmqpRefusal compare_with_quorum_queue(const std::string& name);

 private:
  AmqpConnection() = default;
  carriers::BrokerFailure connect(const AmqpTarget& target, const config::ServerAddress& server);
  AmqpRefusal log_in(const AmqpTarget& target);
  template <typename Ask>
  AmqpRefusal on_own_channel(Ask ask);

  std::unique_ptr<amqp_connection_state_t_, AmqpConnectionEnd> state_;
  std::string server_;
};

/// What a closing method of the server says.
AmqpRefusal amqp_refusal_of(const amqp_method_t& method);

/// A text for a status of librabbitmq.
std::string amqp_status_text(int status);

inline amqp_bytes_t amqp_text(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}

}  // namespace mailroom::amqp
