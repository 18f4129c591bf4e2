// Parses relay URLs. Error messages mask what may be a user or a password.

#include "carriers/smtp/relay_url.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom {
namespace {

constexpr auto url_form = "write it as smtp://host, smtp://user@host:587 or smtps://user@host";

bool is_alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Host and port; `***` for what follows the first colon and is no port.
std::string shown_host(std::string_view text) {
  const auto bracket = text.find_first_not_of("[:.0123456789abcdefABCDEF");
  const bool is_bracketed =
      text.starts_with('[') && bracket != std::string_view::npos && text[bracket] == ']';
  const auto colon = text.find(':', is_bracketed ? bracket : 0);
  if (colon == std::string_view::npos) return shown_text(text);
  const auto port = text.substr(colon + 1);
  const bool is_port = port.find_first_not_of("0123456789") == std::string_view::npos;
  return shown_text(text.substr(0, colon + 1)) + (is_port ? std::string(port) : "***");
}

/// `url` without what may be a user or a password, also one with an unescaped @, comma or slash.
std::string shown_url(std::string_view url) {
  const auto scheme = url.find("://");
  const bool has_scheme =
      scheme != std::string_view::npos && std::all_of(url.begin(), url.begin() + scheme, is_alphanumeric);
  const auto start = has_scheme ? scheme + 3 : 0;
  const auto rest = url.substr(start);
  const auto at = rest.rfind('@');
  const bool has_user = at != std::string_view::npos;
  return std::string(url.substr(0, start)) + (has_user ? "***@" : "") +
         shown_host(rest.substr(has_user ? at + 1 : 0));
}

[[noreturn]] void refuse_url(std::string_view url, std::string_view problem, const char* hint = url_form) {
  throw Error(ExitCode::configuration, fmt::format("the relay '{}' {}", shown_url(url), problem), hint);
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_'; });
}

bool is_number(std::string_view label) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::all_of(label.begin(), label.end(), is_digit) || label.starts_with("0x") ||
         label.starts_with("0X");
}

bool is_address(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  // inet_pton() reads up to a NUL.
  return host.find('\0') == std::string::npos && inet_pton(family, host.c_str(), bytes.data()) == 1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned value = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

std::string user_of(std::string_view userinfo, std::string_view url) {
  if (userinfo.find(':') != std::string_view::npos) {
    refuse_url(url, "contains a password",
               "write the password into a file that only this user can read, and name the file in "
               "send.password_file");
  }
  if (userinfo.find('@') != std::string_view::npos) {
    refuse_url(url, "has more than one @", "write an @ in the user as %40");
  }
  const auto user = percent_decoded(userinfo);
  if (!user || user->empty() || !is_printable(*user)) {
    refuse_url(url, "has no valid user before the @", "write special characters as %XX: user%40example.org");
  }
  return *user;
}

std::uint16_t port_of(std::string_view text, std::string_view url) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0) {
    refuse_url(url, "has no port between 1 and 65535 after the colon");
  }
  return port;
}

/// Throws for the usual mistakes in a name.
void refuse_host(std::string_view host, std::string_view url) {
  const auto bare = host.substr(0, host.find_last_not_of('.') + 1);
  if (bare.size() < host.size() && is_host_name(bare)) {
    const auto hint = fmt::format("write it without the dot at its end: {}", bare);
    refuse_url(url, "has a host that ends in a dot", hint.c_str());
  }
  const bool is_ascii =
      std::all_of(host.begin(), host.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii) return;
  const bool is_plain =
      is_printable(host) && std::all_of(host.begin(), host.end(), [](char c) {
        return static_cast<unsigned char>(c) >= 0x80 || is_alphanumeric(c) || c == '.' || c == '-';
      });
  const auto hint = is_plain ? fmt::format(
                                   "write the name in ASCII, as this prints it: python3 -c \"print('{}'"
                                   ".encode('idna').decode())\"",
                                   shown_text(host))
                             : std::string("write the name in ASCII, its labels as xn--…");
  refuse_url(url, "has an international host name", hint.c_str());
}

/// Takes the host at the front of `text`, which continues with a port or ends.
std::string take_host(std::string_view& text, std::string_view url) {
  std::string host;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end != std::string_view::npos) host = text.substr(1, end - 1);
    if (!is_address(AF_INET6, host)) refuse_url(url, "has no IPv6 address in its brackets");
    text.remove_prefix(end + 1);
    return host;
  }
  const auto size = std::min(text.find(':'), text.size());
  host = text.substr(0, size);
  text.remove_prefix(size);
  if (host.empty()) refuse_url(url, "names no host");
  if (!is_host_name(host) && !is_address(AF_INET, host)) {
    refuse_host(host, url);
    refuse_url(url, "has a host that is neither a name nor an address",
               "write an IPv6 address in brackets: smtp://[::1]:25");
  }
  return host;
}

RelayUrl parse_relay_url(std::string_view url) {
  RelayUrl relay;
  auto rest = url;
  if (rest.starts_with("smtps://")) {
    relay.implicit_tls = true;
    relay.port = 465;
    rest.remove_prefix(8);
  } else if (rest.starts_with("smtp://")) {
    rest.remove_prefix(7);
  } else {
    refuse_url(url, "does not begin with smtp:// or smtps://");
  }
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    refuse_url(url, "continues after its host and port");
  }
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
    relay.user = user_of(rest.substr(0, at), url);
    rest.remove_prefix(at + 1);
  }
  relay.host = take_host(rest, url);
  if (!rest.empty() && rest.front() != ':') refuse_url(url, "continues after its host and port");
  if (!rest.empty()) relay.port = port_of(rest.substr(1), url);
  if (!relay.implicit_tls && relay.port == 465) {
    refuse_url(url, "has port 465, which speaks TLS from the first byte",
               "write it with smtps:// in place of smtp://");
  }
  return relay;
}

std::string_view without_blanks(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

}  // namespace

bool is_host_name(std::string_view text) {
  if (text.size() > 253) return false;
  for (;;) {
    const auto dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return !is_number(text);
    text.remove_prefix(dot + 1);
  }
}

std::string RelayUrl::address() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool RelayUrl::is_loopback() const {
  in_addr ipv4{};
  in6_addr ipv6{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24U == 127;
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) == 1) return IN6_IS_ADDR_LOOPBACK(&ipv6) != 0;
  constexpr std::string_view local = "localhost";
  return std::equal(host.begin(), host.end(), local.begin(), local.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

std::vector<RelayUrl> parse_relay_urls(std::string_view text) {
  std::vector<RelayUrl> relays;
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    const auto url = without_blanks(text.substr(0, comma));
    if (url.empty()) throw Error(ExitCode::configuration, "a relay is missing", url_form);
    relays.push_back(parse_relay_url(url));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return relays;
}

}  // namespace mailroom
