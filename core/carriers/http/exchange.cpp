// Keeps libcurl from sending a request twice, from redirects and from proxies.

#include "carriers/http/exchange.hpp"

#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom::http {
namespace {

constexpr std::size_t longest_header = 65'536;

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

bool HttpResponse::is_json() const {
  return lower_case(header("content-type")).starts_with("application/json");
}

HttpExchange::HttpExchange(const HttpEndpoint& endpoint) : endpoint_(endpoint) {
  set_connection();
  set_callbacks();
}

void HttpExchange::set_connection() {
  curl_.set(CURLOPT_PROTOCOLS_STR, "http,https");
  curl_.set(CURLOPT_URL, endpoint_.url.c_str());
  curl_.set(CURLOPT_FOLLOWLOCATION, 0L);
  curl_.set(CURLOPT_HTTP_VERSION,
            static_cast<long>(endpoint_.offers_http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  // Requests wait for a connection that shows whether they can share it.
  if (endpoint_.offers_http2) curl_.set(CURLOPT_PIPEWAIT, 1L);
  curl_.set(CURLOPT_TIMEOUT_MS, static_cast<long>(endpoint_.timeout.count()));
  curl_.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(endpoint_.timeout.count()));
  curl_.set(CURLOPT_USERAGENT, endpoint_.user_agent.c_str());
  curl_.secure(endpoint_.ca_file);
}

void HttpExchange::set_callbacks() {
  curl_.set(CURLOPT_PRIVATE, static_cast<void*>(this));
  curl_.set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  curl_.set(CURLOPT_PREREQFUNCTION, &HttpExchange::on_request);
  curl_.set(CURLOPT_PREREQDATA, static_cast<void*>(this));
  curl_.set(CURLOPT_HEADERFUNCTION, &HttpExchange::on_header);
  curl_.set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  curl_.set(CURLOPT_WRITEFUNCTION, &HttpExchange::on_body);
  curl_.set(CURLOPT_WRITEDATA, static_cast<void*>(this));
}

void HttpExchange::add_header(const std::string& line) {
  auto* const list = curl_slist_append(headers_.get(), line.c_str());
  if (list == nullptr) throw Error(ExitCode::failed, "out of memory for a header");
  [[maybe_unused]] auto* const same = headers_.release();
  headers_.reset(list);
}

void HttpExchange::prepare(HttpRequest request, std::shared_ptr<delivery::Clearance> clearance) {
  request_ = std::move(request);
  clearance_ = std::move(clearance);
  was_held_back_ = false;
  response_ = {};
  curl_.forget_error();
  header_size_ = 0;
  was_sent_ = false;
  is_too_long_ = false;
  has_header_ = false;
  headers_.reset();
  add_header("Expect:");
  for (const auto& line : request_.headers)
    add_header(line);
  curl_.set(CURLOPT_HTTPHEADER, headers_.get());
  curl_.set(CURLOPT_URL, request_.url.empty() ? endpoint_.url.c_str() : request_.url.c_str());
  if (request_.method == "GET") {
    curl_.set(CURLOPT_HTTPGET, 1L);
    curl_.set(CURLOPT_CUSTOMREQUEST, static_cast<const char*>(nullptr));
    return;
  }
  const auto bytes = request_.bytes();
  curl_.set(CURLOPT_POST, 1L);
  curl_.set(CURLOPT_CUSTOMREQUEST, request_.method == "POST" ? nullptr : request_.method.c_str());
  curl_.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(bytes.size()));
  curl_.set(CURLOPT_POSTFIELDS, bytes.data());
}

std::string HttpExchange::failure_of(CURLcode result) const {
  if (result == CURLE_OK) return "the connection was closed within the header of the answer";
  if (result == CURLE_ABORTED_BY_CALLBACK) return "the connection was closed before the answer";
  return curl_.error_of(result);
}

HttpOutcome HttpExchange::finish(CURLcode result) {
  request_ = {};
  // For libcurl a header may also end with the connection.
  const bool is_whole = (result == CURLE_OK && has_header_) || is_too_long_;
  const auto end = is_whole ? HttpEnd::answered : was_sent_ ? HttpEnd::cut_off : HttpEnd::unsent;
  return {.end = end, .response = std::move(response_), .failure = is_whole ? "" : failure_of(result)};
}

HttpOutcome HttpExchange::give_up(const std::string& why) {
  request_ = {};
  return {.end = was_sent_ ? HttpEnd::cut_off : HttpEnd::unsent, .response = {}, .failure = why};
}

HttpOutcome HttpExchange::perform(HttpRequest request) {
  prepare(std::move(request));
  return finish(curl_easy_perform(curl_.get()));
}

std::string HttpExchange::connect() {
  curl_.set(CURLOPT_CONNECT_ONLY, 1L);
  const auto result = curl_easy_perform(curl_.get());
  return result == CURLE_OK ? std::string() : failure_of(result);
}

/// libcurl would send a request again if a kept connection ends without an answer: the server may have taken
/// it.
int HttpExchange::on_request(void* self, char* /*ip*/, char* /*local_ip*/, int /*port*/, int /*local_port*/) {
  auto& exchange = *static_cast<HttpExchange*>(self);
  exchange.was_held_back_ = exchange.clearance_ != nullptr && !exchange.clearance_->wait();
  if (exchange.was_held_back_) return CURL_PREREQFUNC_ABORT;
  const bool is_repetition = std::exchange(exchange.was_sent_, true);
  return is_repetition ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

std::size_t HttpExchange::on_header(char* text, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<HttpExchange*>(self);
  const std::string_view line(text, size * count);
  exchange.header_size_ += line.size();
  if (exchange.header_size_ > longest_header) return 0;
  auto& response = exchange.response_;
  if (line.starts_with("HTTP/")) {
    long status = 0;
    curl_easy_getinfo(exchange.handle(), CURLINFO_RESPONSE_CODE, &status);
    response = {};
    response.status = status >= 200 ? static_cast<int>(status) : 0;
  }
  exchange.has_header_ = response.status != 0 && trimmed(line).empty();
  if (const auto colon = line.find(':'); colon != std::string_view::npos)
    response.headers[lower_case(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
  return line.size();
}

std::size_t HttpExchange::on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<HttpExchange*>(self);
  auto& body = exchange.response_.body;
  body.append(bytes, std::min(size * count, exchange.endpoint_.longest_answer - body.size()));
  exchange.is_too_long_ = body.size() == exchange.endpoint_.longest_answer;
  return exchange.is_too_long_ ? 0 : size * count;
}

}  // namespace mailroom::http
