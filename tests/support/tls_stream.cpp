#include "support/tls_stream.hpp"

#include <array>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mailroom::test {

TlsStream::TlsStream(int socket, int stop_fd) : socket_(socket), stop_fd_(stop_fd), tls_(nullptr, SSL_free) {}

TlsStream::~TlsStream() {
  close(socket_);
}

bool TlsStream::start_tls(const TestCertificate& certificate) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (SSL_CTX_use_certificate_file(context.get(), certificate.certificate().c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), certificate.key().c_str(), SSL_FILETYPE_PEM) != 1) {
    return false;
  }
  tls_.reset(SSL_new(context.get()));
  buffer_.clear();
  return SSL_set_fd(tls_.get(), socket_) == 1 && SSL_accept(tls_.get()) == 1;
}

bool TlsStream::wait_readable() {
  if (tls_ != nullptr && SSL_pending(tls_.get()) > 0) return true;
  std::array<pollfd, 2> awaited{{{socket_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
  while (poll(awaited.data(), awaited.size(), -1) < 0) {
  }
  return awaited[1].revents == 0;
}

long TlsStream::read_some(char* to, std::size_t room) {
  if (tls_ != nullptr) return SSL_read(tls_.get(), to, static_cast<int>(room));
  return recv(socket_, to, room, 0);
}

bool TlsStream::fill() {
  std::array<char, 4096> bytes{};
  const auto count = wait_readable() ? read_some(bytes.data(), bytes.size()) : 0;
  if (count > 0) buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0;
}

bool TlsStream::read_bytes(std::string& bytes, std::size_t count) {
  while (buffer_.size() < count) {
    if (!fill()) return false;
  }
  bytes = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return true;
}

bool TlsStream::read_line(std::string& line) {
  while (buffer_.find('\n') == std::string::npos) {
    if (!fill()) return false;
  }
  const auto end = buffer_.find('\n');
  line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

bool TlsStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = tls_ != nullptr ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
                                       : send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool TlsStream::pause(Milliseconds duration) {
  pollfd stop{stop_fd_, POLLIN, 0};
  return poll(&stop, 1, static_cast<int>(duration.count())) == 0;
}

bool TlsStream::wait_for_client() {
  return !buffer_.empty() || wait_readable();
}

void TlsStream::wait_for_close() {
  std::array<char, 4096> bytes{};
  while (wait_readable() && read_some(bytes.data(), bytes.size()) > 0) {
  }
}

void TlsStream::reset_on_close() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace mailroom::test
