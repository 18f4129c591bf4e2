// Reads the files of passwords and tokens, and refuses settings that do not go together.

#include "carriers/smtp/relay/configured_relays.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "config/server_url.hpp"
#include "config/settings.hpp"

namespace mailroom::smtp {
namespace {

bool is_full_name(const std::string& name) {
  return name.find('.') != std::string::npos && config::is_host_name(name) && !name.starts_with("localhost.");
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string canonical_name_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  return found->ai_canonname == nullptr ? "" : found->ai_canonname;
}

std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const where = address;
  if (address->sa_family == AF_INET)
    inet_ntop(AF_INET, &static_cast<const sockaddr_in*>(where)->sin_addr, text.data(), text.size());
  if (address->sa_family == AF_INET6) {
    const auto& ipv6 = static_cast<const sockaddr_in6*>(where)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&ipv6) == 0) inet_ntop(AF_INET6, &ipv6, text.data(), text.size());
  }
  return text.data();
}

/// IPv4 addresses first.
std::vector<std::string> own_addresses() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  std::vector<std::string> addresses;
  for (const auto* each = found; each != nullptr; each = each->ifa_next) {
    const bool is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    const auto text = is_up && each->ifa_addr != nullptr ? address_text(each->ifa_addr) : std::string();
    if (!text.empty()) addresses.push_back(text);
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const auto& text) { return text.find(':') == std::string::npos; });
  return addresses;
}

}  // namespace

void check_relay(const RelayUrl& url, const RelayOptions& options) {
  if (!url.user.empty() && options.password.empty() && !options.tokens) {
    throw Error(ExitCode::configuration,
                fmt::format("the relay {} has a user, and there is no password", url.name()),
                "name the file that contains it in send.password_file, or remove the user from the URL");
  }
  if (!options.hello_name.empty()) check_hello_name(options.hello_name);
  if (!options.ca_file.empty() && !std::ifstream(options.ca_file).good()) {
    throw Error(ExitCode::configuration, fmt::format("cannot read the CA file {}", options.ca_file),
                "it is set by send.ca_file, and this user must be able to read it");
  }
}

ConfiguredRelays read_relays(const config::RelayPath& path) {
  ConfiguredRelays configured;
  for (const auto& target : path.targets) {
    configured.relays.push_back(parse_relay_url(target.url));
    configured.relays.back().profile = path.profile;
  }
  auto& options = configured.options;
  options.ca_file = path.ca_file;
  options.hello_name = path.hello_name.empty() ? own_hello_name() : path.hello_name;
  options.plaintext_for_tests = path.plaintext_for_tests;
  options.timeout = path.timeout;
  options.throttled_by = path.throttled_by;
  options.provider = path.provider;
  constexpr auto password_key = "send.password_file";
  if (!path.password_file.empty()) {
    options.password =
        read_password_file(path.password_file, path.allows_readable_files, path.name_of(password_key));
  }
  const bool needs_password = std::any_of(configured.relays.begin(), configured.relays.end(),
                                          [](const RelayUrl& relay) { return !relay.user.empty(); });
  options.tokens = configured_tokens({.file = path.token_file,
                                      .file_key = path.name_of("send.token_file"),
                                      .command = path.token_command,
                                      .command_key = path.name_of("send.token_command"),
                                      .limit = path.timeout,
                                      .allows_readable_file = path.allows_readable_files});
  if (needs_password && !options.tokens && path.password_file.empty())
    config::refuse_missing({path.name_of(password_key)}, password_key);
  for (const auto& relay : configured.relays)
    check_relay(relay, options);
  return configured;
}

bool is_hello_name(std::string_view name) {
  // RFC 5321, section 4.1.3: an address literal.
  if (name.starts_with('[') && name.ends_with(']')) {
    const std::string literal(name.substr(1, name.size() - 2));
    constexpr std::string_view ipv6_tag = "IPv6:";
    std::array<unsigned char, sizeof(in6_addr)> address{};
    if (literal.starts_with(ipv6_tag))
      return inet_pton(AF_INET6, literal.c_str() + ipv6_tag.size(), address.data()) == 1;
    return inet_pton(AF_INET, literal.c_str(), address.data()) == 1;
  }
  return config::is_host_name(name);
}

void check_hello_name(const std::string& name) {
  if (is_hello_name(name)) return;
  throw Error(
      ExitCode::configuration, fmt::format("'{}' is no name for EHLO", shown_text(name)),
      "send.hello_name is the full name of this host, mail.app.example, or its address, [192.0.2.1] or "
      "[IPv6:2001:db8::1]");
}

std::string choose_hello_name(const HostNames& host) {
  for (const auto& name : {host.name, host.canonical}) {
    if (is_full_name(name)) return name;
  }
  if (host.addresses.empty()) return "[127.0.0.1]";
  const auto& address = host.addresses.front();
  return fmt::format("[{}{}]", address.find(':') == std::string::npos ? "" : "IPv6:", address);
}

std::string own_hello_name() {
  HostNames host{.name = host_name(), .canonical = {}, .addresses = own_addresses()};
  if (!is_full_name(host.name)) host.canonical = canonical_name_of(host.name);
  return choose_hello_name(host);
}

}  // namespace mailroom::smtp
