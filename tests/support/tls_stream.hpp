#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "support/test_certificate.hpp"

struct ssl_st;

namespace mailroom::test {

/// The server's end of a connection, plain at first. Every wait ends when `stop_fd` becomes readable.
class TlsStream {
 public:
  /// Takes `socket`, and closes it.
  TlsStream(int socket, int stop_fd);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  /// True if the client has agreed to TLS.
  bool start_tls(const TestCertificate& certificate);
  bool is_encrypted() const { return tls_ != nullptr; }
  /// Reads a line without its line end. False at the end of the connection.
  bool read_line(std::string& line);
  /// Reads so many bytes. False at the end of the connection.
  bool read_bytes(std::string& bytes, std::size_t count);
  /// Throws away what has been received and not read.
  void forget_input() { buffer_.clear(); }
  /// False if the client has gone.
  bool write(std::string_view bytes);
  /// Waits; false if the server stops before.
  bool pause(Milliseconds duration);
  /// Waits until the client sends something or has gone; false if the server stops before.
  bool wait_for_client();
  /// Waits until the client closes the connection.
  void wait_for_close();
  /// Makes the end a reset.
  void reset_on_close();

 private:
  bool fill();
  bool wait_readable();
  long read_some(char* to, std::size_t room);

  int socket_;
  int stop_fd_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
  std::string buffer_;
};

}  // namespace mailroom::test
