// The way into NATS: servers, TLS and login, the library's callbacks, and what a stream is like.
#pragma once

#include <memory>
#include <nats/nats.h>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "carriers/broker.hpp"
#include "config/settings.hpp"

namespace mailroom::nats {

/// Where a NATS cluster is, and as whom to log in.
struct NatsTarget {
  config::ServerUrl url{};
  bool requires_tls = false;
  std::string password{};          ///< of the URL's user
  std::string credentials_file{};  ///< with a JWT and a seed; empty: none
  std::string ca_file{};           ///< PEM file of the only trusted certificates; empty: those of the system
};

/// Throws Error(configuration).
NatsTarget read_nats_target(const config::Settings& settings);

/// Learns what happens on a connection, on threads of the library.
class NatsListener {
 public:
  virtual ~NatsListener() = default;
  /// One of `ack` and `error` is null. `message` is the one that was published, and goes afterwards.
  virtual void on_answer(const natsMsg* message, const jsPubAck* ack, const jsPubAckErr* error) = 0;
  /// The library connects again by itself.
  virtual void on_lost(std::string why) = 0;
  virtual void on_back() = 0;
  /// The library has given up.
  virtual void on_closed(std::string why) = 0;
  /// The server refuses something; the connection remains.
  virtual void on_refused(std::string why) = 0;
};

class NatsLink;

/// A connection with its JetStream context. The library keeps it up; its threads call the listener, never
/// after this is gone.
class NatsConnection {
 public:
  /// Tries each server once, for 2 s at most. Null, and `failure` says why, if none lets mailroom in.
  static std::unique_ptr<NatsConnection> open(const NatsTarget& target, NatsListener* listener,
                                              carriers::BrokerFailure& failure);
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  natsConnection* get() const { return connection_; }
  jsCtx* jetstream() const { return jetstream_; }
  bool is_up() const { return natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED; }
  /// `host:port` of the server that it is connected to.
  std::string server() const;

 private:
  explicit NatsConnection(NatsListener* listener);

  NatsLink* link_;
  natsConnection* connection_ = nullptr;
  jsCtx* jetstream_ = nullptr;
};

/// What the library said last in this thread, or what `status` means.
std::string nats_error_text(natsStatus status);

struct NatsStream {
  bool exists = false;
  carriers::BrokerFailure failure;  ///< if not
  std::vector<std::string> subjects;
  int replicas = 0;
  int online = 0;  ///< replicas that are connected
  bool in_memory = false;
  bool is_work_queue = false;  ///< or interest: messages go when they were read
  bool discards_old = true;
  bool has_no_ack = false;
  Milliseconds duplicate_window{};
  Milliseconds max_age{};  ///< 0: none
  std::int64_t max_messages = -1;
  std::int64_t max_bytes = -1;
  std::int64_t max_message_size = -1;
};

/// What the server says of a stream.
NatsStream read_nats_stream(NatsConnection& connection, const std::string& name);

}  // namespace mailroom::nats
