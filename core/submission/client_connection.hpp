// The socket of one client: bytes in and out of its conversation, TLS, and an end that the client can read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "submission/conversation.hpp"

struct bufferevent;
struct event_base;

namespace mailroom::submission {

class Service;
class TlsServer;

class ClientConnection {
 public:
  /// Takes `fd`. With `tls` the conversation begins after the handshake. It may be broken from the start on.
  ClientConnection(Service& service, event_base* base, std::uint64_t id, int fd, Client client,
                   const TlsServer* tls);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  std::uint64_t id() const { return id_; }
  const std::string& peer() const { return peer_; }
  Conversation& conversation() { return conversation_; }
  /// Reads what has come, and goes on until the conversation waits.
  void go_on();
  /// Writes what the conversation has said.
  void flush();
  /// TLS from now on, when all is written.
  void start_tls(const TlsServer& tls);
  /// True if the system has refused what it needs.
  bool is_broken() const { return stream_ == nullptr; }
  /// True if something that was said has not gone yet.
  bool has_output() const;
  /// True if it has been too slow, or its last word has been there for long enough.
  bool is_overdue(TimePoint now) const;
  bool is_closing() const { return closing_since_.has_value(); }
  bool is_handshaking() const { return is_handshaking_; }

 private:
  friend struct ClientCallbacks;

  void attach(bufferevent* stream, int fd);
  void attach_tls(const TlsServer& tls, int fd);
  void written();
  void happened(short what);
  /// False if there is nothing more to take now.
  bool take_piece();
  void close_writing();

  Service& service_;
  event_base* base_;
  std::uint64_t id_;
  std::string peer_;
  bool is_secure_ = false;
  bool is_handshaking_ = false;
  const TlsServer* tls_ = nullptr;  ///< to begin with
  bufferevent* stream_ = nullptr;
  TimePoint handshake_until_{};
  std::optional<TimePoint> closing_since_;
  Conversation conversation_;
};

}  // namespace mailroom::submission
