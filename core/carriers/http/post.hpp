// A webhook request, from its URL and headers to the verdict on its line.
#pragma once

#include <array>
#include <cstdint>
#include <curl/curl.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/http/answer.hpp"
#include "config/settings.hpp"
#include "crypto/hmac.hpp"
#include "delivery/carrier.hpp"

namespace mailroom {

/// Where requests go, and how.
struct HttpEndpoint {
  std::string url;
  std::string name;  ///< host:port
  std::string ca_file;
  std::string user_agent;
  std::string event_source;  ///< of CloudEvents; empty for none
  Milliseconds timeout{};
};

/// The endpoint of sink.to. Throws Error(configuration) for a URL that is malformed, has a user or a
/// fragment, or is http:// to another host than this one.
HttpEndpoint parse_http_endpoint(const Settings& settings);

/// Signs requests by the conventions of Standard Webhooks, with one secret or with several while one is
/// replaced.
class WebhookSigner {
 public:
  /// Reads each file: `whsec_` and the base64 of 24 to 64 bytes. Throws Error(configuration).
  WebhookSigner(const std::vector<std::string>& files, bool allow_readable);
  /// Takes the secrets themselves. Throws Error(configuration) that names the place of a wrong one, but not
  /// the secret.
  explicit WebhookSigner(const std::vector<std::string>& secrets);

  bool signs() const { return !secrets_.empty(); }
  /// The header webhook-signature: `v1,BASE64` for each secret, separated by blanks.
  std::string signature(std::string_view id, std::int64_t timestamp, std::string_view body);

 private:
  void add(std::string_view secret, const std::string& source);

  std::vector<Hmac> secrets_;
};

/// One request at a time to an endpoint. Reads at most 64 KiB of the header and of the body of an answer.
class HttpPost {
 public:
  /// Throws Error(failed). `endpoint` must outlive this.
  explicit HttpPost(const HttpEndpoint& endpoint);
  HttpPost(const HttpPost&) = delete;
  HttpPost& operator=(const HttpPost&) = delete;

  /// Prepares the request with a message, for handle().
  void prepare(Message message, WebhookSigner& signer, std::int64_t now);
  CURL* handle() const { return curl_.get(); }
  /// What has become of the request, which ended with `result`.
  Answer finish(CURLcode result, std::int64_t now) const;
  /// What becomes of the request, which is given up.
  Answer give_up(const std::string& why) const;
  /// Only connects, with all checks. Why it fails, or empty.
  std::string connect();

 private:
  template <typename T>
  void set(CURLoption option, T value);
  void set_connection();
  void set_callbacks();
  void add_header(const std::string& line);
  Answer completed(Answer answer) const;
  std::string failure_of(CURLcode result) const;

  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_request(void* self, char* ip, char* local_ip, int port, int local_port);
  static std::size_t on_header(char* line, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self);

  struct FreeHandle {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  const HttpEndpoint& endpoint_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::unique_ptr<CURL, FreeHandle> curl_;
  Message parcel_;
  TimePoint began_{};
  HttpResponse response_;
  std::size_t header_size_ = 0;
  bool was_sent_ = false;     ///< the request, or a part of it
  bool is_too_long_ = false;  ///< the body, so that it is not read to its end
  bool has_header_ = false;   ///< the whole of it
};

}  // namespace mailroom
