// A handle of libcurl with what holds for every connection to a server of others: no proxy that nobody
// configured, no socket for our children, and TLS that checks whom it talks to.
#pragma once

#include <array>
#include <curl/curl.h>
#include <fmt/format.h>
#include <memory>
#include <string>

#include "base/error.hpp"

namespace mailroom::transfer {

/// What connects, and with which protocol, is the owner's to set. Nothing is set for TLS before secure().
class Handle {
 public:
  /// Throws Error(failed). Initialises libcurl before its first use; it is never cleaned up, since other
  /// threads may still use OpenSSL.
  Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  CURL* get() const { return curl_.get(); }

  /// Throws Error(failed) if libcurl refuses `option`: it was built without it.
  template <typename Value>
  void set(CURLoption option, Value value) {
    const auto result = curl_easy_setopt(curl_.get(), option, value);
    if (result == CURLE_OK) return;
    throw Error(ExitCode::failed, fmt::format("libcurl refuses option {}: {}", static_cast<int>(option),
                                              curl_easy_strerror(result)));
  }

  /// Asks for TLS 1.2 or newer, and a certificate for the name of the host by an authority of `ca_file`, or
  /// of the system if it is empty.
  void secure(const std::string& ca_file);

  /// Ends the connection, and makes the handle anew: libcurl keeps a connection that it only opens until the
  /// end of its handle. All options are those of a new one.
  void renew();
  /// Ends the connection. The handle cannot be used before renew().
  void close() { curl_.reset(); }

  /// Before an attempt: forgets the words of the last one.
  void forget_error() { error_.front() = '\0'; }
  /// Why the last attempt failed, in the words of libcurl; may be empty.
  const char* error() const { return error_.data(); }
  /// error(), or the name of `result` without one.
  const char* error_of(CURLcode result) const {
    return error_.front() == '\0' ? curl_easy_strerror(result) : error_.data();
  }

 private:
  struct End {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };

  std::array<char, CURL_ERROR_SIZE> error_{};
  std::unique_ptr<CURL, End> curl_;
};

}  // namespace mailroom::transfer
