// Sets up libcurl, tries the other addresses of a name, and reads replies line by line.

#include "carriers/smtp/dialogue/connection.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <span>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace mailroom::smtp {
namespace {

/// Of a longer line only its beginning is kept.
constexpr std::size_t longest_reply_line = 65'536;
constexpr std::size_t kept_of_line = 4096;
constexpr std::string_view goodbye = "QUIT\r\n";

/// libcurl takes the name in EHLO from the path, which it decodes.
std::string curl_url(const RelayUrl& url, const std::string& hello_name) {
  std::string path;
  for (const char c : hello_name)
    path += c == '[' ? "%5B" : c == ']' ? "%5D" : c == ':' ? "%3A" : std::string(1, c);
  return fmt::format("{}://{}/{}", url.implicit_tls ? "smtps" : "smtp", url.address(), path);
}

/// Keywords of EHLO are in any case (RFC 5321, section 2.4).
void capitalise_starttls(std::span<char> line) {
  constexpr std::string_view keyword = "STARTTLS";
  constexpr std::size_t code = 4;
  if (line.size() < code + keyword.size()) return;
  const auto offered = line.subspan(code, keyword.size());
  const auto capital = [](unsigned char c) { return static_cast<char>(std::toupper(c)); };
  if (std::ranges::equal(offered, keyword, {}, capital)) std::ranges::copy(keyword, offered.begin());
}

/// A relay that sends one short reply after the other holds the second until the first is acknowledged (RFC
/// 896), which Linux does after 40 ms. It forgets that it was asked.
void acknowledge_at_once(curl_socket_t socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

}  // namespace

RelayConnection::RelayConnection(const RelayUrl& url, const RelayOptions& options, RelaySockets& sockets,
                                 Dialogue& dialogue)
    : url_(url),
      options_(options),
      sockets_(sockets),
      dialogue_(dialogue),
      resolve_(nullptr, curl_slist_free_all) {
  for (const auto& entry : options_.resolve)
    resolve_.reset(curl_slist_append(resolve_.release(), entry.c_str()));
  renew_handle();
}

RelayConnection::~RelayConnection() {
  close();
}

void RelayConnection::renew_handle() {
  curl_.renew();
  set_connection();
  set_security();
  set_callbacks();
}

void RelayConnection::set_connection() {
  curl_.set(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_.set(CURLOPT_URL, curl_url(url_, options_.hello_name).c_str());
  // A mail that libcurl sends costs three times the CPU: it has no pipelining, and polls twice for each
  // reply.
  curl_.set(CURLOPT_CONNECT_ONLY, 1L);
  if (resolve_) curl_.set(CURLOPT_RESOLVE, resolve_.get());
  // The time-outs are those of Dialogue, which on_progress() applies: libcurl's own are the second line.
  curl_.set(CURLOPT_SERVER_RESPONSE_TIMEOUT,
            static_cast<long>(std::chrono::ceil<std::chrono::seconds>(options_.timeout).count() + 5));
  curl_.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.timeout.count()));
}

void RelayConnection::set_security() {
  curl_.set(CURLOPT_USE_SSL,
            static_cast<long>(requires_tls(url_, options_) ? CURLUSESSL_ALL : CURLUSESSL_NONE));
  curl_.secure(options_.ca_file);
}

void RelayConnection::set_callbacks() {
  curl_.set(CURLOPT_HEADERFUNCTION, &RelayConnection::on_line);
  curl_.set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  curl_.set(CURLOPT_OPENSOCKETFUNCTION, &RelayConnection::on_open);
  curl_.set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  curl_.set(CURLOPT_CLOSESOCKETFUNCTION, &RelayConnection::on_close);
  curl_.set(CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
  curl_.set(CURLOPT_XFERINFOFUNCTION, &RelayConnection::on_progress);
  curl_.set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
  curl_.set(CURLOPT_NOPROGRESS, 0L);
  // Reports each command as it is sent; nothing is printed.
  curl_.set(CURLOPT_DEBUGFUNCTION, &RelayConnection::on_debug);
  curl_.set(CURLOPT_DEBUGDATA, static_cast<void*>(this));
  curl_.set(CURLOPT_VERBOSE, 1L);
}

std::size_t RelayConnection::on_line(char* line, std::size_t size, std::size_t count, void* self) {
  auto& dialogue = static_cast<RelayConnection*>(self)->dialogue_;
  // libcurl reads these bytes after this, and knows the keyword in capitals only.
  if (dialogue.exchange().step == SmtpStep::hello) capitalise_starttls({line, size * count});
  dialogue.received({line, size * count});
  // Another value ends the connection.
  return dialogue.exchange().stop == SmtpStop::no_smtp ? 0 : size * count;
}

int RelayConnection::on_debug(CURL* /*curl*/, curl_infotype kind, char* bytes, std::size_t size, void* self) {
  auto& dialogue = static_cast<RelayConnection*>(self)->dialogue_;
  if (kind == CURLINFO_HEADER_OUT) dialogue.sent({bytes, size}, steady_now());
  return 0;
}

int RelayConnection::on_progress(void* self, curl_off_t /*download_total*/, curl_off_t /*downloaded*/,
                                 curl_off_t /*upload_total*/, curl_off_t /*uploaded*/) {
  auto& connection = *static_cast<RelayConnection*>(self);
  return connection.sockets_.interrupted() || connection.dialogue_.is_overdue(steady_now()) ? 1 : 0;
}

curl_socket_t RelayConnection::on_open(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
  auto& connection = *static_cast<RelayConnection*>(self);
  std::string bytes(reinterpret_cast<const char*>(&address->addr), address->addrlen);
  if (std::ranges::find(connection.avoided_, bytes) != connection.avoided_.end()) return CURL_SOCKET_BAD;
  connection.address_ = std::move(bytes);
  connection.dialogue_.connecting(steady_now(), connection.url_.implicit_tls);
  return connection.sockets_.open(address->family, address->socktype, address->protocol);
}

/// A connection that is given up while it is opened, as without STARTTLS, libcurl closes without QUIT.
int RelayConnection::on_close(void* self, curl_socket_t socket) {
  auto& connection = *static_cast<RelayConnection*>(self);
  if (connection.is_opening_ && connection.dialogue_.is_plain()) connection.sockets_.say(socket, goodbye);
  return connection.sockets_.close(socket);
}

CURLcode RelayConnection::open() {
  if (steady_now() >= avoided_until_) avoided_.clear();
  auto result = open_once();
  if (!was_reached_ && !avoided_.empty() && !sockets_.interrupted()) {
    // The others are down: the first may serve again.
    avoided_.clear();
    dialogue_.begin(steady_now());
    result = open_once();
  }
  if (result != CURLE_OK && was_reached_) open_next(result);
  return result;
}

bool RelayConnection::open_next(CURLcode& result) {
  constexpr std::chrono::minutes avoided_for{5};
  do {
    if (sockets_.interrupted()) return false;
    avoided_.push_back(address_);
    avoided_until_ = steady_now() + avoided_for;
    const auto dialogue = dialogue_;
    const auto error = error_;
    dialogue_.begin(steady_now());
    const auto next = open_once();
    if (!was_reached_) {
      dialogue_ = dialogue;
      error_ = error;
      was_reached_ = true;
      avoided_.clear();
      return false;
    }
    result = next;
  } while (result != CURLE_OK);
  return true;
}

CURLcode RelayConnection::open_once() {
  close();
  address_.clear();
  renew_handle();
  curl_.forget_error();
  dialogue_.connecting(steady_now(), url_.implicit_tls);
  is_opening_ = true;
  auto result = curl_easy_perform(curl_.get());
  is_opening_ = false;
  error_ = curl_.error();
  curl_off_t connected_after = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_CONNECT_TIME_T, &connected_after);
  was_reached_ = connected_after > 0;
  if (result == CURLE_OK) result = curl_easy_getinfo(curl_.get(), CURLINFO_ACTIVESOCKET, &socket_);
  is_open_ = result == CURLE_OK;
  return result;
}

bool RelayConnection::is_quiet() {
  if (!is_open_ || has_input()) return false;
  char byte = 0;
  std::size_t size = 0;
  return curl_easy_recv(curl_.get(), &byte, 1, &size) == CURLE_AGAIN;
}

bool RelayConnection::wait_for(short events) const {
  constexpr Milliseconds longest_wait{60'000};
  const auto left = std::chrono::ceil<Milliseconds>(dialogue_.overdue_at() - steady_now());
  pollfd awaited{.fd = socket_, .events = events, .revents = 0};
  ::poll(&awaited, 1, static_cast<int>(std::clamp(left, Milliseconds(0), longest_wait).count()));
  return !sockets_.interrupted() && !dialogue_.is_overdue(steady_now());
}

bool RelayConnection::send(std::string_view bytes) {
  sent_ = 0;
  if (has_input()) return false;
  while (!bytes.empty()) {
    std::size_t size = 0;
    const auto result = curl_easy_send(curl_.get(), bytes.data(), bytes.size(), &size);
    if (result != CURLE_OK && (result != CURLE_AGAIN || !wait_for(POLLOUT))) return false;
    bytes.remove_prefix(size);
    sent_ += size;
    if (size > 0 && !bytes.empty()) dialogue_.sending(steady_now());
  }
  return true;
}

bool RelayConnection::receive() {
  std::array<char, 4096> bytes{};
  std::size_t size = 0;
  auto result = CURLE_AGAIN;
  while ((result = curl_easy_recv(curl_.get(), bytes.data(), bytes.size(), &size)) == CURLE_AGAIN) {
    acknowledge_at_once(socket_);
    if (!wait_for(POLLIN)) return false;
  }
  if (result != CURLE_OK || size == 0) return false;
  input_.append(bytes.data(), size);
  const auto line = input_.rfind('\n') + 1;
  if (input_.size() - line > longest_reply_line) input_.resize(line + kept_of_line);
  return true;
}

bool RelayConnection::read_reply() {
  while (dialogue_.exchange().code == 0) {
    if (const auto end = input_.find('\n'); end != std::string::npos) {
      dialogue_.received(std::string_view(input_).substr(0, end + 1));
      input_.erase(0, end + 1);
    } else if (dialogue_.is_overdue(steady_now()) || !receive()) {
      return false;
    }
  }
  return true;
}

bool RelayConnection::command(const std::string& text) {
  const auto line = text + "\r\n";
  dialogue_.sent(line, steady_now());
  return send(line) && read_reply();
}

void RelayConnection::close() {
  std::size_t size = 0;
  if (is_quiet()) curl_easy_send(curl_.get(), goodbye.data(), goodbye.size(), &size);
  sockets_.end_reading();
  is_open_ = false;
  input_.clear();
}

void RelayConnection::drop() {
  sockets_.shut_down();
  is_open_ = false;
}

}  // namespace mailroom::smtp
