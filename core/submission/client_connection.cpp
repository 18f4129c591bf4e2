// libevent calls back for one connection after the other. After the last word the socket is shut down for
// writing and read on: a reset, which unread bytes cause, would overtake the reply.

#include "submission/client_connection.hpp"

#include <algorithm>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "submission/service.hpp"

namespace mailroom::submission {
namespace {

/// A client that sends ahead waits in the kernel.
constexpr std::size_t most_read = 65536;
constexpr Milliseconds linger{2000};

}  // namespace

/// What libevent calls.
struct ClientCallbacks {
  static void read(bufferevent* /*stream*/, void* client) { static_cast<ClientConnection*>(client)->go_on(); }
  static void written(bufferevent* /*stream*/, void* client) {
    static_cast<ClientConnection*>(client)->written();
  }
  static void happened(bufferevent* /*stream*/, short what, void* client) {
    static_cast<ClientConnection*>(client)->happened(what);
  }
};

ClientConnection::ClientConnection(Service& service, event_base* base, std::uint64_t id, int fd,
                                   Client client, const TlsServer* tls)
    : service_(service),
      base_(base),
      id_(id),
      peer_(client.peer),
      conversation_(service.options_.terms, service.answers_, std::move(client)) {
  if (tls != nullptr) {
    attach_tls(*tls, fd);
    return;
  }
  attach(bufferevent_socket_new(base_, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS), fd);
  if (is_broken()) return;
  conversation_.greet(steady_now());
  flush();
}

ClientConnection::~ClientConnection() {
  if (stream_ != nullptr) bufferevent_free(stream_);
}

void ClientConnection::attach(bufferevent* stream, int fd) {
  stream_ = stream;
  if (stream_ == nullptr) {
    ::close(fd);
    return;
  }
  if (is_secure_) bufferevent_openssl_set_allow_dirty_shutdown(stream_, 1);
  bufferevent_setcb(stream_, ClientCallbacks::read, ClientCallbacks::written, ClientCallbacks::happened,
                    this);
  bufferevent_setwatermark(stream_, EV_READ, 0, most_read);
  bufferevent_enable(stream_, EV_READ | EV_WRITE);
}

void ClientConnection::attach_tls(const TlsServer& tls, int fd) {
  is_secure_ = is_handshaking_ = true;
  handshake_until_ = steady_now() + service_.options_.terms.login_timeout;
  auto* const session = tls.session();
  attach(session == nullptr ? nullptr
                            : bufferevent_openssl_socket_new(base_, fd, session, BUFFEREVENT_SSL_ACCEPTING,
                                                             BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS),
         session == nullptr ? fd : -1);  // else it has closed it
}

void ClientConnection::flush() {
  const auto text = conversation_.take_output();
  if (!text.empty()) bufferevent_write(stream_, text.data(), text.size());
  if (!conversation_.is_over() || closing_since_) return;
  closing_since_ = steady_now();
  service_.leave(peer_);
}

bool ClientConnection::has_output() const {
  return evbuffer_get_length(bufferevent_get_output(stream_)) > 0;
}

void ClientConnection::go_on() {
  if (closing_since_) {
    auto* input = bufferevent_get_input(stream_);
    evbuffer_drain(input, evbuffer_get_length(input));
    return;
  }
  while (take_piece()) {
  }
}

/// Data is taken as it lies in the buffer; for a line it is made one piece.
bool ClientConnection::take_piece() {
  auto* input = bufferevent_get_input(stream_);
  const auto size = evbuffer_get_length(input);
  const auto piece =
      std::min(size, std::max(evbuffer_get_contiguous_space(input), conversation_.longest_line() + 1));
  const auto* bytes = evbuffer_pullup(input, static_cast<ev_ssize_t>(piece));
  std::string_view text(static_cast<const char*>(static_cast<const void*>(bytes)),
                        bytes == nullptr ? 0 : piece);
  const auto before = text.size();
  const auto wish = conversation_.take(text, size > piece, steady_now());
  evbuffer_drain(input, before - text.size());
  flush();
  if (wish != Conversation::Wish::none) {
    service_.fulfil(*this, wish);
    return false;
  }
  // What is left is no whole line, or more than one piece had come.
  return before > text.size() && evbuffer_get_length(input) > 0 && !conversation_.is_over();
}

void ClientConnection::start_tls(const TlsServer& tls) {
  tls_ = &tls;
  // What comes next is the handshake, and must wait for it in the kernel.
  bufferevent_disable(stream_, EV_READ);
}

void ClientConnection::written() {
  // Of what was written before the last.
  if (has_output()) return;
  if (tls_ != nullptr) {
    const auto fd = bufferevent_getfd(stream_);
    // Its descriptor goes on, and must not be closed with it.
    bufferevent_setfd(stream_, -1);
    bufferevent_free(std::exchange(stream_, nullptr));
    attach_tls(*std::exchange(tls_, nullptr), fd);
    if (is_broken()) service_.drop(id_);
    return;
  }
  if (closing_since_) close_writing();
}

void ClientConnection::close_writing() {
  if (is_secure_) SSL_shutdown(bufferevent_openssl_get_ssl(stream_));
  ERR_clear_error();
  ::shutdown(bufferevent_getfd(stream_), SHUT_WR);
}

void ClientConnection::happened(short what) {
  // An error that stays in OpenSSL's queue ends the next session of this thread.
  while (is_secure_ && bufferevent_get_openssl_error(stream_) != 0) {
  }
  ERR_clear_error();
  if ((what & BEV_EVENT_CONNECTED) == 0) return service_.drop(id_);
  is_handshaking_ = false;
  // With STARTTLS the client speaks first, with TLS from the first byte it is greeted.
  if (conversation_.is_waiting()) {
    conversation_.secured(steady_now());
  } else {
    conversation_.greet(steady_now());
  }
  flush();
  go_on();
}

bool ClientConnection::is_overdue(TimePoint now) const {
  if (closing_since_) return now > *closing_since_ + linger;
  if (is_handshaking_) return now > handshake_until_;
  const auto overdue_at = conversation_.overdue_at();
  return overdue_at && now > *overdue_at;
}

}  // namespace mailroom::submission
