// Parses by itself, since several servers are no valid URL. Errors mask what may be a user or a password.

#include "config/server_url.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <fmt/format.h>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::config {
namespace {

bool is_alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// The size of `smtp://` at the front; 0 without one.
std::size_t scheme_size(std::string_view text) {
  const auto end = text.find("://");
  const bool has_scheme =
      end != std::string_view::npos && std::all_of(text.begin(), text.begin() + end, is_alphanumeric);
  return has_scheme ? end + 3 : 0;
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
  std::string shown(url.substr(0, scheme_size(url)));
  const auto at = url.rfind('@');
  if (at != std::string_view::npos) shown += "***@";
  const char* separator = "";
  for (const auto server : split(url.substr(at == std::string_view::npos ? shown.size() : at + 1), ',')) {
    const auto start = scheme_size(server);
    shown += separator + std::string(server.substr(0, start)) + shown_host(server.substr(start));
    separator = ",";
  }
  return shown;
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

bool is_ip(int family, const std::string& host) {
  in6_addr bytes{};
  // inet_pton() reads up to a NUL.
  return host.find('\0') == std::string::npos && inet_pton(family, host.c_str(), &bytes) == 1;
}

}  // namespace

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
  return is_printable(decoded) ? std::optional(decoded) : std::nullopt;
}

namespace {

/// Reads one URL from the front to the end.
class UrlReader {
 public:
  UrlReader(std::string_view text, const UrlForm& form) : text_(text), rest_(text), form_(form) {}

  ServerUrl read() {
    ServerUrl url;
    take_scheme();
    url.scheme = scheme_->name;
    if (const auto at = rest_.rfind('@'); at != std::string_view::npos) {
      url.user = user_in(rest_.substr(0, at));
      rest_.remove_prefix(at + 1);
    }
    url.servers.push_back(take_server());
    while (skip(',')) {
      skip_repeated_scheme();
      url.servers.push_back(take_server());
    }
    url.path = take_path();
    return url;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& hint = {}) const {
    const auto usual =
        fmt::format("write it as {0}://host, or {0}://user@host:port,host2:port", scheme_->name);
    const auto& form = form_.hint.empty() ? usual : form_.hint;
    throw Error(ExitCode::configuration, fmt::format("{} '{}' {}", form_.subject, shown_url(text_), problem),
                hint.empty() ? form : hint);
  }

  bool skip(char c) {
    const bool is_next = rest_.starts_with(c);
    if (is_next) rest_.remove_prefix(1);
    return is_next;
  }

  void take_scheme() {
    const auto size = scheme_size(text_);
    const auto name = lower_case(text_.substr(0, size < 3 ? 0 : size - 3));
    const auto known = std::ranges::find(form_.schemes, name, &UrlScheme::name);
    if (known == form_.schemes.end()) {
      std::vector<std::string> starts;
      for (const auto& scheme : form_.schemes)
        starts.push_back(fmt::format("{}://", scheme.name));
      refuse(fmt::format("does not begin with {}", joined(starts, " or ")));
    }
    scheme_ = &*known;
    rest_.remove_prefix(size);
  }

  void skip_repeated_scheme() {
    const auto start = fmt::format("{}://", scheme_->name);
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    if (rest_.starts_with(start)) rest_.remove_prefix(start.size());
  }

  std::string user_in(std::string_view text) const {
    if (text.find(':') != std::string_view::npos) {
      refuse(
          "contains a password",
          fmt::format("write the password into a file that only this user can read, and name the file in {}",
                      form_.password_key));
    }
    if (text.find('@') != std::string_view::npos)
      refuse("has more than one @", "write an @ in the user as %40");
    const auto user = percent_decoded(text);
    if (!user || user->empty() || text.find_first_of(",/") != std::string_view::npos)
      refuse("has no valid user before the @", "write special characters as %XX: user%40example.org");
    return *user;
  }

  ServerAddress take_server() {
    const auto end = std::min(rest_.find_first_of(",/?#"), rest_.size());
    auto text = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(end);
    ServerAddress server{.host = take_host(text), .port = scheme_->port};
    if (text.empty()) return server;
    if (text.front() != ':') refuse("continues after its host and port");
    const auto port = parse_number<std::uint16_t>(text.substr(1));
    if (!port || *port == 0) refuse("has no port between 1 and 65535 after the colon");
    server.port = *port;
    return server;
  }

  /// Takes the host at the front of `text`, which continues with a port or ends.
  std::string take_host(std::string_view& text) const {
    std::string host;
    if (text.starts_with('[')) {
      const auto end = text.find(']');
      if (end != std::string_view::npos) host = text.substr(1, end - 1);
      if (!is_ip(AF_INET6, host)) refuse("has no IPv6 address in its brackets");
      text.remove_prefix(end + 1);
      return host;
    }
    host = text.substr(0, text.find(':'));
    text.remove_prefix(host.size());
    if (host.empty()) refuse("names no host");
    if (is_host_name(host) || is_ip(AF_INET, host)) return host;
    refuse_usual_mistakes(host);
    refuse("has a host that is neither a name nor an address",
           fmt::format("write an IPv6 address in brackets: {}://[::1]:{}", scheme_->name, scheme_->port));
  }

  void refuse_usual_mistakes(std::string_view host) const {
    const auto bare = host.substr(0, host.find_last_not_of('.') + 1);
    if (bare.size() < host.size() && is_host_name(bare))
      refuse("has a host that ends in a dot", fmt::format("write it without the dot at its end: {}", bare));
    const auto is_foreign = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
    if (std::ranges::none_of(host, is_foreign)) return;
    const bool is_plain = is_printable(host) && std::ranges::all_of(host, [&](char c) {
                            return is_foreign(c) || is_alphanumeric(c) || c == '.' || c == '-';
                          });
    refuse("has an international host name",
           is_plain ? fmt::format("write the name in ASCII, as this prints it: python3 -c \"print('{}'"
                                  ".encode('idna').decode())\"",
                                  shown_text(host))
                    : "write the name in ASCII, its labels as xn--…");
  }

  std::string take_path() {
    if (rest_.empty()) return {};
    if (!form_.has_path) refuse("continues after its host and port");
    if (rest_.find_first_of("?#") != std::string_view::npos) refuse("continues after its servers");
    skip('/');
    const auto path = percent_decoded(rest_);
    if (!path) refuse("has a path that is not printable");
    return *path;
  }

  std::string_view text_;
  std::string_view rest_;  ///< what is still to be read
  const UrlForm& form_;
  const UrlScheme* scheme_ = form_.schemes.data();  ///< the first until it is read
};

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

std::string ServerAddress::address() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool ServerAddress::is_loopback() const {
  in_addr ipv4{};
  in6_addr ipv6{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24U == 127;
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) == 1) return IN6_IS_ADDR_LOOPBACK(&ipv6) != 0;
  return lower_case(host) == "localhost";
}

std::string ServerUrl::addresses() const {
  std::string all;
  for (const auto& server : servers)
    all += (all.empty() ? "" : ",") + server.address();
  return all;
}

ServerUrl parse_server_url(std::string_view text, const UrlForm& form) {
  return UrlReader(text, form).read();
}

}  // namespace mailroom::config
