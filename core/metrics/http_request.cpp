// Parses the head of a request. A request with two hosts is refused.

#include "metrics/http_request.hpp"

#include <algorithm>
#include <arpa/inet.h>

#include "base/text.hpp"

namespace mailroom {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

/// The lines of a head, which may end with CRLF or LF; nullopt without the empty line that ends it.
std::optional<std::vector<std::string_view>> head_lines(std::string_view bytes) {
  std::vector<std::string_view> lines;
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    auto line = bytes.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    bytes.remove_prefix(end + 1);
    if (line.empty()) return lines;
    lines.push_back(line);
  }
  return std::nullopt;
}

/// `[::1]:9464` and `localhost:9464` without the port, in small letters.
std::string without_port(std::string_view host) {
  if (host.starts_with('[')) return lower(host.substr(1, host.find(']') - 1));
  return lower(host.substr(0, host.find(':')));
}

/// The value of the header Host; nullopt if it is there more than once.
std::optional<std::string> host_of(const std::vector<std::string_view>& lines) {
  std::optional<std::string> host;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto colon = lines[i].find(':');
    if (colon == std::string_view::npos || lower(lines[i].substr(0, colon)) != "host") continue;
    if (host) return std::nullopt;
    host = without_port(trimmed(lines[i].substr(colon + 1)));
  }
  return host.value_or("");
}

}  // namespace

std::optional<std::variant<HttpRequest, HttpRefusal>> parse_http_request(std::string_view bytes) {
  const auto lines = head_lines(bytes.substr(0, longest_http_head));
  if (!lines) {
    if (bytes.size() < longest_http_head) return std::nullopt;
    return HttpRefusal{431, "the head of the request is too long"};
  }
  if (lines->empty()) return HttpRefusal{400, "there is no request"};
  const auto words = split(lines->front(), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1."))
    return HttpRefusal{400, "this is not a request of HTTP/1"};
  if (words[0] != "GET" && words[0] != "HEAD") return HttpRefusal{405, "only GET and HEAD are answered"};
  const auto host = host_of(*lines);
  if (!host) return HttpRefusal{400, "there is more than one host"};
  const auto path = words[1].substr(0, words[1].find('?'));
  return HttpRequest{.path = std::string(path), .host = *host, .is_head = words[0] == "HEAD"};
}

bool is_loopback_name(std::string_view host) {
  if (host.empty() || host == "localhost" || host == "::1") return true;
  in_addr address{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &address) != 1) return false;
  return ntohl(address.s_addr) >> 24 == 127;
}

}  // namespace mailroom
