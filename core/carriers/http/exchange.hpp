// One HTTP request and its answer, sent once and by nobody's proxy: what every carrier over HTTP stands on.
#pragma once

#include <cstdint>
#include <curl/curl.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "delivery/clearance.hpp"
#include "transfer/handle.hpp"

namespace mailroom::http {

/// Where requests go, and how.
struct HttpEndpoint {
  std::string url;
  std::string name;     ///< host:port
  std::string ca_file;  ///< of the only trusted certificates; empty: those of the system
  std::string user_agent;
  Milliseconds timeout{};               ///< of a request, from its connection to the end of the answer
  bool offers_http2 = false;            ///< over TLS, where the server takes it too
  std::size_t longest_answer = 65'536;  ///< of the body of an answer no more is read
};

/// What requests have.
enum class HttpContent {
  secret,    ///< tokens or credentials, which the network must not see
  harmless,  ///< what may go to another host without TLS
};

/// An endpoint of this program at `url`, which `setting` has. Throws Error(configuration) for a URL that is
/// malformed, has a user or a fragment, or is http:// to another host than this one if the content is secret;
/// `user_hint` says what to do instead of naming a user.
HttpEndpoint parse_http_url(const std::string& url, std::string_view setting, const char* user_hint,
                            HttpContent content = HttpContent::secret);

/// As parse_http_url(), for the URL of a server: without a path, and in the result without a slash at its
/// end. `form`: how to write it.
HttpEndpoint parse_http_server(const std::string& url, std::string_view setting, const char* user_hint,
                               std::string_view form);

/// What is asked of an endpoint.
struct HttpRequest {
  std::string method = "POST";
  std::string url{};                   ///< empty: that of the endpoint
  std::vector<std::string> headers{};  ///< each `Name: value`
  std::string body{};
  std::string_view
      shared_body{};  ///< in place of `body`, if it is not empty; lives until the answer is there

  std::string_view bytes() const { return shared_body.empty() ? std::string_view(body) : shared_body; }
};

/// What a server has answered to one request, as far as it was read.
struct HttpResponse {
  int status = 0;                                             ///< 0 for none
  std::map<std::string, std::string, std::less<>> headers{};  ///< by their names in lower case
  std::string body{};                                         ///< its begin, if it is longer than is read

  /// The value of a header, `name` in lower case; empty without it.
  std::string_view header(std::string_view name) const;
  /// True if its Content-Type says that the body is JSON.
  bool is_json() const;
};

/// How a request ended.
enum class HttpEnd {
  answered,  ///< with a whole answer, or with more than is read of one
  unsent,    ///< no connection, or none to be trusted
  cut_off,   ///< after the request had been sent, before the end of the answer
};

/// What became of a request.
struct HttpOutcome {
  HttpEnd end = HttpEnd::unsent;
  HttpResponse response{};
  std::string failure{};  ///< why there is no whole answer; empty if there is
};

/// One request at a time to an endpoint. Reads at most 64 KiB of the header of an answer, and of its
/// body what the endpoint says.
class HttpExchange {
 public:
  /// Throws Error(failed). `endpoint` must outlive this.
  explicit HttpExchange(const HttpEndpoint& endpoint);
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  /// Prepares the request for handle(). Once there is a connection, it awaits `clearance`, which may be null.
  void prepare(HttpRequest request, std::shared_ptr<delivery::Clearance> clearance = {});
  CURL* handle() const { return curl_.get(); }
  /// What has become of the request, which ended with `result`. Its body is freed.
  HttpOutcome finish(CURLcode result);
  /// True if the request was not sent, as its clearance was refused.
  bool was_held_back() const { return was_held_back_; }
  /// What becomes of the request, which is given up. Its body is freed.
  HttpOutcome give_up(const std::string& why);
  /// Sends the request and waits for its answer.
  HttpOutcome perform(HttpRequest request);
  /// Only connects, with all checks. Why it fails, or empty.
  std::string connect();

 private:
  void set_connection();
  void set_callbacks();
  void add_header(const std::string& line);
  std::string failure_of(CURLcode result) const;

  static int on_request(void* self, char* ip, char* local_ip, int port, int local_port);
  static std::size_t on_header(char* line, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self);

  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  const HttpEndpoint& endpoint_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  transfer::Handle curl_;
  HttpRequest request_;
  HttpResponse response_;
  std::size_t header_size_ = 0;
  std::shared_ptr<delivery::Clearance> clearance_;
  bool was_held_back_ = false;
  bool was_sent_ = false;     ///< the request, or a part of it
  bool is_too_long_ = false;  ///< the body, so that it is not read to its end
  bool has_header_ = false;   ///< the whole of it
};

}  // namespace mailroom::http
