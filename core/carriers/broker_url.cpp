// Parses by itself, since several servers are no valid URL, and shows no part that may be a password.

#include "carriers/broker_url.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <fmt/format.h>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "carriers/smtp/relay_url.hpp"

namespace mailroom {
namespace {

/// What an error says of a URL: the setting that has it, and a scheme that it may have.
struct QuotedUrl {
  std::string_view text;
  std::string_view key;
  std::string_view scheme;
};

/// The URL is shown without what may be a user or a password.
[[noreturn]] void refuse_broker(const QuotedUrl& url, const std::string& problem,
                                const std::string& hint = {}) {
  const auto scheme = url.text.find("://");
  const auto at = url.text.rfind('@');
  auto shown = std::string(url.text);
  if (at != std::string_view::npos)
    shown = fmt::format("{}***{}", url.text.substr(0, scheme < at ? scheme + 3 : 0), url.text.substr(at));
  throw Error(ExitCode::configuration, fmt::format("{} '{}' {}", url.key, shown_text(shown), problem),
              hint.empty()
                  ? fmt::format("write it as {0}://host, or {0}://user@host:port,host2:port", url.scheme)
                  : hint);
}

std::optional<std::string> broker_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned value = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) return std::nullopt;
    plain += static_cast<char>(value);
    i += 2;
  }
  return is_printable(plain) ? std::optional(plain) : std::nullopt;
}

std::string user_in(std::string_view text, const QuotedUrl& url) {
  if (text.find(':') != std::string_view::npos) {
    refuse_broker(url, "contains a password",
                  "write the password into a file that only this user can read, and name the file in "
                  "sink.password_file");
  }
  auto user = broker_decoded(text);
  if (!user || user->empty() || text.find_first_of("@,/") != std::string_view::npos)
    refuse_broker(url, "has no valid user before the @",
                  "write special characters as %XX: user%40example.org");
  return *user;
}

bool is_ip(int family, const std::string& host) {
  in6_addr bytes{};
  return host.find('\0') == std::string::npos && inet_pton(family, host.c_str(), &bytes) == 1;
}

BrokerServer server_in(std::string_view text, std::uint16_t default_port, const QuotedUrl& url) {
  BrokerServer server{.host = {}, .port = default_port};
  const bool is_bracketed = text.starts_with('[');
  const auto end = is_bracketed ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) refuse_broker(url, "has no ] after its [");
  server.host = text.substr(is_bracketed ? 1 : 0, end - (is_bracketed ? 1 : 0));
  const bool is_sound =
      is_bracketed ? is_ip(AF_INET6, server.host) : is_host_name(server.host) || is_ip(AF_INET, server.host);
  if (server.host.empty()) refuse_broker(url, "names no host");
  if (!is_sound) {
    refuse_broker(url, "has a host that is neither a name nor an address",
                  "write an IPv6 address in brackets: [::1]:4222");
  }
  const auto rest = text.substr(end + (is_bracketed ? 1 : 0));
  if (rest.empty()) return server;
  const auto port = rest.front() == ':' ? parse_number<std::uint16_t>(rest.substr(1)) : std::nullopt;
  if (!port || *port == 0) refuse_broker(url, "has no port between 1 and 65535 after the colon");
  server.port = *port;
  return server;
}

}  // namespace

std::string BrokerServer::address() const {
  return RelayUrl{.host = host, .port = port, .user = {}}.address();
}

bool BrokerServer::is_loopback() const {
  return RelayUrl{.host = host, .port = port, .user = {}}.is_loopback();
}

std::string BrokerUrl::addresses() const {
  std::string all;
  for (const auto& server : servers)
    all += (all.empty() ? "" : ",") + server.address();
  return all;
}

BrokerUrl parse_broker_url(std::string_view text, const std::vector<BrokerScheme>& schemes,
                           std::string_view key) {
  BrokerUrl url;
  auto rest = text;
  const auto scheme = rest.find("://");
  url.scheme = lower_case(rest.substr(0, scheme == std::string_view::npos ? 0 : scheme));
  const auto known = std::ranges::find_if(schemes, [&](const auto& each) { return each.name == url.scheme; });
  const QuotedUrl quoted{text, key, known == schemes.end() ? schemes.front().name : known->name};
  if (known == schemes.end()) refuse_broker(quoted, "has an unknown scheme");
  const auto prefix = fmt::format("{}://", url.scheme);
  rest.remove_prefix(prefix.size());
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
    url.user = user_in(rest.substr(0, at), quoted);
    rest.remove_prefix(at + 1);
  }
  for (bool more = true; more;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
    const auto end = std::min(rest.find_first_of(",/?#"), rest.size());
    url.servers.push_back(server_in(trimmed(rest.substr(0, end)), known->port, quoted));
    rest.remove_prefix(end);
    more = rest.starts_with(',');
    if (more) rest.remove_prefix(1);
  }
  if (rest.find_first_of("?#") != std::string_view::npos)
    refuse_broker(quoted, "continues after its servers");
  if (rest.starts_with('/')) rest.remove_prefix(1);
  const auto path = broker_decoded(rest);
  if (!path) refuse_broker(quoted, "has a path that is not printable");
  url.path = *path;
  return url;
}

void require_loopback(const BrokerUrl& url, const char* hint) {
  for (const auto& server : url.servers) {
    if (server.is_loopback()) continue;
    throw Error(ExitCode::configuration,
                fmt::format("sink.to names {}, which is not on this host, without TLS", server.address()),
                hint);
  }
}

std::string filled_name(std::string_view text, std::string_view queue, std::string_view action) {
  std::string filled;
  while (!text.empty()) {
    const auto brace = std::min(text.find('{'), text.size());
    filled += text.substr(0, brace);
    text.remove_prefix(brace);
    if (text.starts_with("{queue}")) {
      filled += queue;
      text.remove_prefix(7);
    } else if (text.starts_with("{action}")) {
      filled += action;
      text.remove_prefix(8);
    } else if (!text.empty()) {
      filled += text.front();
      text.remove_prefix(1);
    }
  }
  return filled;
}

}  // namespace mailroom
