// libevent calls back for one connection after the other.

#include "http_door/http_connection.hpp"

#include <array>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "http_door/http_door.hpp"
#include "submission/tls_server.hpp"

namespace mailroom::http_door {
namespace {

constexpr std::size_t most_read = 262144;
constexpr Milliseconds linger{2000};
// Longer than the pools of clients keep theirs: a server that closes first makes a POST fail that nobody
// repeats.
constexpr Milliseconds longest_rest{75'000};
constexpr std::size_t slowest_rate = 10'000;

const char* phrase_of(int status) {
  constexpr std::array<std::pair<int, const char*>, 14> phrases{{{200, "OK"},
                                                                 {400, "Bad Request"},
                                                                 {401, "Unauthorized"},
                                                                 {403, "Forbidden"},
                                                                 {404, "Not Found"},
                                                                 {405, "Method Not Allowed"},
                                                                 {409, "Conflict"},
                                                                 {413, "Content Too Large"},
                                                                 {415, "Unsupported Media Type"},
                                                                 {422, "Unprocessable Content"},
                                                                 {429, "Too Many Requests"},
                                                                 {500, "Internal Server Error"},
                                                                 {503, "Service Unavailable"},
                                                                 {408, "Request Timeout"}}};
  for (const auto& [code, phrase] : phrases)
    if (code == status) return phrase;
  return "Unknown";
}

}  // namespace

/// What libevent calls.
struct HttpCallbacks {
  static void read(bufferevent* /*stream*/, void* self) { static_cast<HttpConnection*>(self)->take(); }
  static void written(bufferevent* /*stream*/, void* self) { static_cast<HttpConnection*>(self)->written(); }
  static void happened(bufferevent* /*stream*/, short what, void* self) {
    static_cast<HttpConnection*>(self)->happened(what);
  }
};

HttpConnection::HttpConnection(HttpDoor& door, event_base* base, std::uint64_t id, int fd, std::string peer,
                               const submission::TlsServer* tls, std::size_t most_body, Milliseconds timeout)
    : door_(door),
      id_(id),
      peer_(std::move(peer)),
      is_secure_(tls != nullptr),
      is_handshaking_(is_secure_),
      reader_(most_body),
      timeout_(timeout),
      since_(steady_now()) {
  constexpr int options = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS;
  if (tls == nullptr) {
    stream_ = bufferevent_socket_new(base, fd, options);
    if (stream_ == nullptr) ::close(fd);
  } else if (auto* const session = tls->session(); session == nullptr) {
    ::close(fd);
  } else {
    // Where it fails it has closed the socket.
    stream_ = bufferevent_openssl_socket_new(base, fd, session, BUFFEREVENT_SSL_ACCEPTING, options);
    if (stream_ != nullptr) bufferevent_openssl_set_allow_dirty_shutdown(stream_, 1);
  }
  if (stream_ == nullptr) return;
  bufferevent_setcb(stream_, HttpCallbacks::read, HttpCallbacks::written, HttpCallbacks::happened, this);
  bufferevent_setwatermark(stream_, EV_READ, 0, most_read);
  bufferevent_enable(stream_, EV_READ | EV_WRITE);
}

HttpConnection::~HttpConnection() {
  door_.hold(-static_cast<std::ptrdiff_t>(held_));
  if (stream_ != nullptr) bufferevent_free(stream_);
}

bool HttpConnection::has_output() const {
  return evbuffer_get_length(bufferevent_get_output(stream_)) > 0;
}

void HttpConnection::write(const std::string& text) {
  bufferevent_write(stream_, text.data(), text.size());
}

void HttpConnection::take() {
  auto* const input = bufferevent_get_input(stream_);
  while (!is_waiting()) {
    const auto size = evbuffer_get_length(input);
    if (is_closing()) {
      evbuffer_drain(input, size);
      return;
    }
    if (size == 0) return;
    if (!reader_.has_begun()) since_ = steady_now();
    const auto piece = evbuffer_get_contiguous_space(input);
    const auto* const bytes = evbuffer_pullup(input, static_cast<ev_ssize_t>(piece));
    std::string_view text(static_cast<const char*>(static_cast<const void*>(bytes)), piece);
    const auto event = reader_.take(text);
    evbuffer_drain(input, piece - text.size());
    const auto held = reader_.held();
    const bool has_room = door_.hold(static_cast<std::ptrdiff_t>(held) -
                                     static_cast<std::ptrdiff_t>(std::exchange(held_, held)));
    if (!has_room && event == HttpReader::Event::more) {
      door_.refuse(*this,
                   {Problem::unavailable, "Too many requests at a time: nothing was stored, try again later"},
                   true);
      return;
    }
    if (event == HttpReader::Event::head) method_ = reader_.request().method;
    if (event != HttpReader::Event::more) door_.happened(*this, event);
  }
}

bool HttpConnection::hold_more(std::size_t bytes) {
  held_ += bytes;
  return door_.hold(static_cast<std::ptrdiff_t>(bytes));
}

void HttpConnection::go_on_with_body() {
  if (reader_.wants_continue() && reader_.has_body()) write("HTTP/1.1 100 Continue\r\n\r\n");
  reader_.go_on(true);
  // A request without a body is whole without another byte.
  std::string_view none;
  const auto event = reader_.take(none);
  if (event == HttpReader::Event::whole) door_.happened(*this, event);
}

void HttpConnection::answer(const Answer& answer, const std::string& more, bool ends) {
  waits_for_ = 0;
  credentials_.reset();
  door_.hold(-static_cast<std::ptrdiff_t>(std::exchange(held_, 0)));
  const bool closes = ends || !reader_.keeps_alive();
  auto text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: {}\r\n{}\r\n",
      answer.status, phrase_of(answer.status), answer.body.size(), closes ? "close" : "keep-alive", more);
  if (method_ != "HEAD") text += answer.body;
  write(text);
  since_ = steady_now();
  if (closes) close_soon();
}

/// The socket is read on for a while: a reset, which unread bytes cause, would overtake the answer.
void HttpConnection::close_soon() {
  if (!closing_since_) closing_since_ = steady_now();
  if (!has_output()) written();
}

void HttpConnection::written() {
  if (!closing_since_ || has_output()) return;
  if (is_secure_) SSL_shutdown(bufferevent_openssl_get_ssl(stream_));
  ERR_clear_error();
  ::shutdown(bufferevent_getfd(stream_), SHUT_WR);
}

void HttpConnection::happened(short what) {
  // An error that stays in OpenSSL's queue ends the next session of this thread.
  while (is_secure_ && bufferevent_get_openssl_error(stream_) != 0) {
  }
  ERR_clear_error();
  if ((what & BEV_EVENT_CONNECTED) == 0) return door_.drop(id_);
  is_handshaking_ = false;
}

bool HttpConnection::is_overdue(TimePoint now) const {
  if (closing_since_) return now > *closing_since_ + linger;
  if (is_waiting()) return false;
  if (is_handshaking_ || reader_.has_begun())
    return now > since_ + timeout_ + std::chrono::seconds(reader_.held() / slowest_rate);
  return now > since_ + longest_rest;
}

}  // namespace mailroom::http_door
