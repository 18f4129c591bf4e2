// Accepts addresses in digits, localhost and paths. It resolves no names.

#include "config/listen_address.hpp"

#include <arpa/inet.h>
#include <array>
#include <fmt/format.h>

#include "base/text.hpp"

namespace mailroom::config {
namespace {

constexpr std::string_view unix_prefix = "unix:";

bool is_address(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(family, host.c_str(), bytes.data()) == 1;
}

std::optional<ListenAddress> parse_port(std::string host, std::string_view digits) {
  const auto port = parse_number<int>(digits);
  if (!port || *port < 0 || *port > 65'535) return std::nullopt;
  return ListenAddress{.host = std::move(host), .port = *port};
}

}  // namespace

std::string ListenAddress::text() const {
  if (is_unix()) return std::string(unix_prefix) + path;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_ipv6 ? "[{}]:{}" : "{}:{}"), host, port);
}

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  if (text.starts_with(unix_prefix)) text.remove_prefix(unix_prefix.size());
  if (text.starts_with('/')) return ListenAddress{.path = std::string(text)};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string host(text.substr(0, colon));
  const auto digits = text.substr(colon + 1);
  if (host == "localhost") return parse_port("127.0.0.1", digits);
  if (is_address(AF_INET, host)) return parse_port(std::move(host), digits);
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return std::nullopt;
  host = host.substr(1, host.size() - 2);
  return is_address(AF_INET6, host) ? parse_port(std::move(host), digits) : std::nullopt;
}

}  // namespace mailroom::config
