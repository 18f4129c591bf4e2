// Keeps libcurl from sending a request twice, from redirects and from proxies.

#include "carriers/http/post.hpp"

#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "carriers/cloud_event.hpp"
#include "crypto/base64.hpp"

namespace mailroom {
namespace {

constexpr std::size_t longest_header = 65'536;
constexpr std::size_t longest_body = 65'536;

/// Initialises libcurl before its first use.
CURL* new_easy_handle() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL* const handle = initialised == CURLE_OK ? curl_easy_init() : nullptr;
  if (handle == nullptr) throw Error(ExitCode::failed, "cannot initialise libcurl");
  return handle;
}

/// The value, if `line` is the header `name`, which is in lower case.
std::optional<std::string> header_value(std::string_view line, std::string_view name) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || lower_case(line.substr(0, colon)) != name) return std::nullopt;
  return std::string(trimmed(line.substr(colon + 1)));
}

constexpr std::string_view prefix = "whsec_";
constexpr std::size_t shortest_secret = 24;
constexpr std::size_t longest_secret = 64;
constexpr auto content = "it must have one line, made with: echo whsec_$(openssl rand -base64 32)";

}  // namespace

HttpPost::HttpPost(const HttpEndpoint& endpoint) : endpoint_(endpoint), curl_(new_easy_handle()) {
  set_connection();
  set_callbacks();
}

template <typename T>
void HttpPost::set(CURLoption option, T value) {
  const auto result = curl_easy_setopt(curl_.get(), option, value);
  if (result == CURLE_OK) return;
  throw Error(ExitCode::failed, fmt::format("libcurl refuses option {}: {}", static_cast<int>(option),
                                            curl_easy_strerror(result)));
}

void HttpPost::set_connection() {
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_URL, endpoint_.url.c_str());
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  // A proxy would resolve the name after our check of the address.
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(endpoint_.timeout.count()));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(endpoint_.timeout.count()));
  set(CURLOPT_USERAGENT, endpoint_.user_agent.c_str());
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (endpoint_.ca_file.empty()) return;
  set(CURLOPT_CAINFO, endpoint_.ca_file.c_str());
  set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
}

void HttpPost::set_callbacks() {
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_OPENSOCKETFUNCTION, &HttpPost::on_open);
  set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  set(CURLOPT_PREREQFUNCTION, &HttpPost::on_request);
  set(CURLOPT_PREREQDATA, static_cast<void*>(this));
  set(CURLOPT_HEADERFUNCTION, &HttpPost::on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, &HttpPost::on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
}

void HttpPost::add_header(const std::string& line) {
  auto* const list = curl_slist_append(headers_.get(), line.c_str());
  if (list == nullptr) throw Error(ExitCode::failed, "out of memory for a header");
  [[maybe_unused]] auto* const same = headers_.release();
  headers_.reset(list);
}

void HttpPost::prepare(Message message, WebhookSigner& signer, std::int64_t now) {
  parcel_ = std::move(message);
  began_ = steady_now();
  response_ = {};
  error_.front() = '\0';
  header_size_ = 0;
  was_sent_ = false;
  is_too_long_ = false;
  has_header_ = false;
  headers_.reset();
  add_header("Content-Type: application/json");
  add_header("Accept: application/json");
  add_header("Expect:");
  add_header("webhook-id: " + parcel_.message_id);
  add_header(fmt::format("webhook-timestamp: {}", now));
  if (signer.signs())
    add_header("webhook-signature: " + signer.signature(parcel_.message_id, now, parcel_.body));
  add_header(fmt::format("mailroom-attempt: {}", parcel_.attempt));
  for (const auto& [name, value] : cloud_event_attributes(parcel_, endpoint_.event_source))
    add_header(fmt::format("ce-{}: {}", name, cloud_event_header_value(value)));
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_POST, 1L);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(parcel_.body.size()));
  set(CURLOPT_POSTFIELDS, parcel_.body.data());
}

std::string HttpPost::failure_of(CURLcode result) const {
  if (result == CURLE_OK) return "the connection was closed within the header of the answer";
  if (result == CURLE_ABORTED_BY_CALLBACK) return "the connection was closed before the answer";
  return error_.front() == '\0' ? curl_easy_strerror(result) : error_.data();
}

Answer HttpPost::finish(CURLcode result, std::int64_t now) const {
  // For libcurl a header may also end with the connection.
  const bool is_whole = (result == CURLE_OK && has_header_) || is_too_long_;
  const auto end = is_whole ? HttpEnd::answered : was_sent_ ? HttpEnd::cut_off : HttpEnd::unsent;
  return completed(judge_response(response_, end, is_whole ? "" : failure_of(result), now));
}

Answer HttpPost::give_up(const std::string& why) const {
  return completed(judge_response({}, was_sent_ ? HttpEnd::cut_off : HttpEnd::unsent, why, 0));
}

Answer HttpPost::completed(Answer answer) const {
  answer.id = parcel_.id;
  answer.sink = endpoint_.name;
  answer.took = steady_now() - began_;
  answer.ended = wall_now();
  return answer;
}

std::string HttpPost::connect() {
  set(CURLOPT_CONNECT_ONLY, 1L);
  const auto result = curl_easy_perform(curl_.get());
  return result == CURLE_OK ? std::string() : failure_of(result);
}

/// Children of this process must not inherit the connection.
curl_socket_t HttpPost::on_open(void* /*self*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/// libcurl would send a request again if a kept connection ends without an answer: the server may have taken
/// it.
int HttpPost::on_request(void* self, char* /*ip*/, char* /*local_ip*/, int /*port*/, int /*local_port*/) {
  const bool is_repetition = std::exchange(static_cast<HttpPost*>(self)->was_sent_, true);
  return is_repetition ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

std::size_t HttpPost::on_header(char* text, std::size_t size, std::size_t count, void* self) {
  auto& post = *static_cast<HttpPost*>(self);
  const std::string_view line(text, size * count);
  post.header_size_ += line.size();
  if (post.header_size_ > longest_header) return 0;
  auto& response = post.response_;
  if (line.starts_with("HTTP/")) {
    long status = 0;
    curl_easy_getinfo(post.handle(), CURLINFO_RESPONSE_CODE, &status);
    response = {};
    response.status = status >= 200 ? static_cast<int>(status) : 0;
  }
  post.has_header_ = response.status != 0 && trimmed(line).empty();
  if (auto value = header_value(line, "retry-after")) response.retry_after = *std::move(value);
  if (auto value = header_value(line, "location")) response.location = *std::move(value);
  if (const auto value = header_value(line, "content-type"))
    response.is_json = lower_case(*value).starts_with("application/json");
  return line.size();
}

std::size_t HttpPost::on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& post = *static_cast<HttpPost*>(self);
  auto& body = post.response_.body;
  body.append(bytes, std::min(size * count, longest_body - body.size()));
  post.is_too_long_ = body.size() == longest_body;
  return post.is_too_long_ ? 0 : size * count;
}

WebhookSigner::WebhookSigner(const std::vector<std::string>& files, bool allow_readable) {
  for (const auto& path : files) {
    const SecretFile file(path, {"signing secret", "sink.signing_secret_files", "", content}, allow_readable);
    add(file.text(), path);
  }
}

WebhookSigner::WebhookSigner(const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets)
    add(secret, fmt::format("number {}", secrets_.size() + 1));
}

void WebhookSigner::add(std::string_view secret, const std::string& source) {
  const bool has_prefix = secret.starts_with(prefix);
  const auto bytes = decoded_base64(has_prefix ? secret.substr(prefix.size()) : secret);
  if (!has_prefix || !bytes || bytes->size() < shortest_secret || bytes->size() > longest_secret) {
    throw Error(ExitCode::configuration,
                fmt::format("the signing secret {} is not whsec_ and the base64 of {} to {} bytes", source,
                            shortest_secret, longest_secret),
                content);
  }
  secrets_.emplace_back(std::span(*bytes));
}

std::string WebhookSigner::signature(std::string_view id, std::int64_t timestamp, std::string_view body) {
  std::string header;
  const auto time = std::to_string(timestamp);
  for (auto& secret : secrets_) {
    header += header.empty() ? "v1," : " v1,";
    header += base64(secret.digest({id, ".", time, ".", body}));
  }
  return header;
}

}  // namespace mailroom
