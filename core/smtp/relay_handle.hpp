#pragma once

#include <array>
#include <curl/curl.h>
#include <memory>
#include <string>
#include <vector>

#include "smtp/delivery.hpp"
#include "smtp/dialogue.hpp"
#include "smtp/relay.hpp"
#include "smtp/relay_sockets.hpp"

namespace mailroom {

/// One libcurl easy handle, with the callbacks through which it reports.
class RelayHandle {
 public:
  RelayHandle(RelayUrl url, RelayOptions options);
  ~RelayHandle();
  RelayHandle(const RelayHandle&) = delete;
  RelayHandle& operator=(const RelayHandle&) = delete;

  /// One attempt.
  Delivery attempt(const Mail& mail, bool on_fresh_connection, bool& again);

  /// As an attempt on a fresh connection, with NOOP in place of a mail.
  RelayCheck check();

  const RelayUrl url;
  RelaySockets sockets;

 private:
  template <typename T>
  void set(CURLoption option, T value);
  void set_connection();
  void set_security();
  void set_callbacks();
  SmtpExchange perform(const Mail& mail);
  SmtpExchange finished_exchange() const;
  RelayFault fault_of(const SmtpExchange& exchange) const;
  std::string text_of(const SmtpExchange& exchange, MailOutcome outcome) const;

  static std::size_t on_read(char* to, std::size_t size, std::size_t count, void* self);
  static std::size_t on_line(char* line, std::size_t size, std::size_t count, void* self);
  static int on_debug(CURL* curl, curl_infotype kind, char* bytes, std::size_t size, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t socket);

  RelayOptions options_;
  std::vector<std::string> secrets_;
  Dialogue dialogue_;
  CURLcode result_ = CURLE_OK;
  std::array<char, CURL_ERROR_SIZE> error_{};
  /// Destroyed first: its end is reported to the callbacks.
  std::unique_ptr<CURL, void (*)(CURL*)> curl_;
};

}  // namespace mailroom
