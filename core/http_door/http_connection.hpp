// One connection of a client that speaks HTTP, in the loop of the service.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "http_door/http_reader.hpp"
#include "http_door/keyed_session.hpp"

struct bufferevent;
struct event_base;

namespace mailroom::submission {
class TlsServer;
}

namespace mailroom::http_door {

class HttpDoor;

class HttpConnection {
 public:
  /// Takes the socket. `tls`: null without TLS. `timeout` is that of a request, as in HttpOptions.
  HttpConnection(HttpDoor& door, event_base* base, std::uint64_t id, int fd, std::string peer,
                 const submission::TlsServer* tls, std::size_t most_body, Milliseconds timeout);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  std::uint64_t id() const { return id_; }
  const std::string& peer() const { return peer_; }
  bool is_broken() const { return stream_ == nullptr; }
  /// True while a request waits for its answer.
  bool is_waiting() const { return waits_for_ != 0; }
  bool is_idle() const { return !is_waiting() && !reader_.has_begun() && !has_output(); }
  bool is_closing() const { return closing_since_.has_value(); }
  bool is_overdue(TimePoint now) const;
  /// The request that waits; 0 for none.
  std::uint64_t waits_for() const { return waits_for_; }
  void wait_for(std::uint64_t request) { waits_for_ = request; }

  HttpReader& reader() { return reader_; }
  std::optional<Credentials>& credentials() { return credentials_; }
  /// Counts memory that the request has until its answer. False if there is no room.
  bool hold_more(std::size_t bytes);
  /// The body may come, and is taken.
  void go_on_with_body();
  /// `more`: further lines of the head. Ends the connection if it is asked for, or the body is not read.
  void answer(const Answer& answer, const std::string& more, bool ends);
  /// Takes what has come.
  void take();
  void close_soon();

 private:
  friend struct HttpCallbacks;

  void happened(short what);
  void written();
  bool has_output() const;
  void write(const std::string& text);

  HttpDoor& door_;
  std::uint64_t id_;
  std::string peer_;
  bool is_secure_ = false;
  bool is_handshaking_ = false;
  bufferevent* stream_ = nullptr;
  HttpReader reader_;
  std::optional<Credentials> credentials_;  ///< of the request that is read
  std::string method_;
  std::uint64_t waits_for_ = 0;
  std::size_t held_ = 0;
  Milliseconds timeout_;
  TimePoint since_;  ///< of the request, or of the rest
  std::optional<TimePoint> closing_since_;
};

}  // namespace mailroom::http_door
