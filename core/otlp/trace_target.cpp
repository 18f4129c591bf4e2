// A key in a header is as secret as a password, so it comes from a file or from the variable of
// OpenTelemetry.

#include "otlp/trace_target.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "base/actor.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "otlp/otlp_json.hpp"

namespace mailroom::otlp {
namespace {

constexpr Milliseconds request_time{10'000};

std::string variable_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

[[noreturn]] void refuse_header(const std::string& source, const char* why) {
  throw Error(
      ExitCode::configuration, fmt::format("{} has a header that {}", source, why),
      "write each as Name: value on a line of trace.headers_file, or name=value, separated by commas, in "
      "OTEL_EXPORTER_OTLP_HEADERS");
}

/// The header is never shown: it may be a key.
std::string header_of(std::string_view name, std::string_view value, const std::string& source) {
  const auto is_token = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  if (name.empty() || !std::ranges::all_of(name, is_token)) refuse_header(source, "has no name");
  if (value.empty() || !std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; }))
    refuse_header(source, "has no value, or one with other characters than those of ASCII");
  for (const auto* own : {"content-type", "content-length", "host", "connection", "transfer-encoding"}) {
    if (lower_case(std::string(name)) == own) refuse_header(source, "mailroom sets itself");
  }
  return fmt::format("{}: {}", name, value);
}

/// Bytes for `%XX`; what is none stays.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0 &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 2])) != 0;
    decoded +=
        is_escape ? static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)) : text[i];
    if (is_escape) i += 2;
  }
  return decoded;
}

std::vector<std::string> configured_headers(const config::Settings& settings) {
  if (const auto& file = settings.trace.headers_file; !file.empty()) {
    const SecretFile headers(
        file, {"headers", "trace.headers_file", "signing.allow_readable_key", "Name: value, one a line"},
        settings.signing.allow_readable_key);
    return headers_of_lines(headers.text(), "trace.headers_file");
  }
  for (const auto* name : {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}) {
    if (const auto value = variable_of(name); !value.empty()) return headers_of_pairs(value, name);
  }
  return {};
}

}  // namespace

http::HttpEndpoint trace_endpoint(const std::string& url, http::HttpContent content) {
  const auto scheme = lower_case(url.substr(0, url.find(':')));
  if (scheme != "http" && scheme != "https") {
    throw Error(ExitCode::configuration, "the URL of trace.endpoint is neither http:// nor https://",
                "write it as http://127.0.0.1:4318");
  }
  auto endpoint = http::parse_http_url(
      url, "trace.endpoint", "put what the collector of traces asks for into trace.headers_file", content);
  const auto path = url.find('/', url.find("://") + 3);
  if (path == std::string::npos) {
    endpoint.url += "/v1/traces";
  } else if (path + 1 == url.size()) {
    endpoint.url += "v1/traces";
  }
  endpoint.timeout = request_time;
  return endpoint;
}

TraceTarget trace_target(const config::Settings& settings) {
  TraceTarget target;
  target.headers = configured_headers(settings);
  target.endpoint =
      trace_endpoint(settings.trace.endpoint,
                     target.headers.empty() ? http::HttpContent::harmless : http::HttpContent::secret);
  target.resource =
      resource_attributes(settings.trace.environment, fmt::format("{}:{}", host_name(), getpid()));
  return target;
}

std::vector<std::string> headers_of_lines(std::string_view text, const std::string& source) {
  std::vector<std::string> headers;
  for (const auto part : split(text, '\n')) {
    const auto line = trimmed(part);
    if (line.empty() || line.front() == '#') continue;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) refuse_header(source, "has no colon");
    headers.push_back(header_of(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)), source));
  }
  return headers;
}

std::vector<std::string> headers_of_pairs(std::string_view text, const std::string& source) {
  std::vector<std::string> headers;
  for (const auto part : split(text, ',')) {
    const auto pair = trimmed(part);
    if (pair.empty()) continue;
    const auto sign = pair.find('=');
    if (sign == std::string_view::npos) refuse_header(source, "has no =");
    const auto value = percent_decoded(trimmed(pair.substr(sign + 1)));
    headers.push_back(header_of(trimmed(pair.substr(0, sign)), trimmed(value), source));
  }
  return headers;
}

std::string resource_attributes(std::string_view environment, std::string_view instance) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    text += fmt::format(R"(,{{"key":"{}","value":{{"stringValue":{}}}}})", name,
                        ascii_json(nlohmann::json(std::string(value))));
  };
  add("service.instance.id", instance);
  // The former name too: collectors still look at it.
  add("deployment.environment.name", environment);
  add("deployment.environment", environment);
  return text;
}

std::string trace_problem(const http::HttpOutcome& outcome) {
  constexpr const char* grpc =
      "it speaks gRPC: this is not the port of OTLP over HTTP, which usually is 4318";
  // What libcurl says of the first bytes of HTTP/2.
  const bool is_http2 = outcome.failure.find("HTTP/0.9") != std::string::npos;
  if (is_http2 ||
      lower_case(std::string(outcome.response.header("content-type"))).starts_with("application/grpc"))
    return grpc;
  if (outcome.end != http::HttpEnd::answered) return outcome.failure;
  const auto status = outcome.response.status;
  if (status >= 200 && status < 300) return {};
  const bool is_login = status == 401 || status == 403;
  return fmt::format("it answers {}{}", status,
                     is_login ? ": it knows no key of trace.headers_file or OTEL_EXPORTER_OTLP_HEADERS" : "");
}

std::string try_target(const TraceTarget& target) {
  http::HttpRequest request;
  request.headers = target.headers;
  request.headers.emplace_back("Content-Type: application/json");
  append_otlp_json(request.body, {}, target.resource);
  return shown_text(trace_problem(http::HttpExchange(target.endpoint).perform(std::move(request))));
}

}  // namespace mailroom::otlp
