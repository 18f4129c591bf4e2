// The URL is read by the library that fetches it: two readers could find two hosts in it.

#include "http_door/remote_file.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <curl/curl.h>
#include <memory>
#include <netinet/in.h>
#include <span>
#include <sys/socket.h>

#include "base/text.hpp"

namespace mailroom::http_door {
namespace {

constexpr std::size_t longest_url = 2048;

struct Block {
  std::array<std::uint8_t, 16> address;
  int bits;
};

/// Of IPv4: what IANA has for special purposes (RFC 6890).
constexpr std::array<Block, 15> special_4{{{{0}, 8},
                                           {{10}, 8},
                                           {{100, 64}, 10},
                                           {{127}, 8},
                                           {{169, 254}, 16},
                                           {{172, 16}, 12},
                                           {{192, 0, 0}, 24},
                                           {{192, 0, 2}, 24},
                                           {{192, 88, 99}, 24},
                                           {{192, 168}, 16},
                                           {{198, 18}, 15},
                                           {{198, 51, 100}, 24},
                                           {{203, 0, 113}, 24},
                                           {{224}, 4},
                                           {{240}, 4}}};
/// Of IPv6 only these are global unicast, without those that have a purpose or lead to IPv4.
constexpr Block global_6{{0x20}, 3};
constexpr std::array<Block, 4> special_6{
    {{{0x20, 0x01}, 23}, {{0x20, 0x01, 0x0d, 0xb8}, 32}, {{0x20, 0x02}, 16}, {{0x3f, 0xff}, 20}}};

bool is_in(std::span<const std::uint8_t> address, const Block& block) {
  for (int bit = 0; bit < block.bits; ++bit) {
    const auto at = static_cast<std::size_t>(bit / 8);
    const auto mask = static_cast<std::uint8_t>(0x80 >> (bit % 8));
    if ((address[at] & mask) != (block.address[at] & mask)) return false;
  }
  return true;
}

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool is_name(std::string_view host) {
  // The last label of a name has a letter, which no address has.
  const auto last = host.substr(host.rfind('.') + 1);
  return host.find('.') != std::string_view::npos && host.size() <= 253 && !host.starts_with('.') &&
         host.find("..") == std::string_view::npos &&
         std::ranges::any_of(last, [](unsigned char c) { return std::isalpha(c) != 0; }) &&
         !(last.starts_with("0x")) && std::ranges::all_of(host, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.';
         });
}

bool is_allowed(std::string_view host, const std::vector<std::string>& hosts) {
  return std::ranges::any_of(hosts, [&](const std::string& each) {
    const auto allowed = lower_case(each);
    if (!allowed.starts_with("*.")) return host == allowed;
    const auto end = std::string_view(allowed).substr(1);
    return host.size() > end.size() && host.ends_with(end);
  });
}

}  // namespace

bool is_host_pattern(std::string_view host) {
  return is_name(host.starts_with("*.") ? host.substr(2) : host);
}

std::string problem_of_url(const std::string& url, const std::vector<std::string>& hosts, RemoteFile& file) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (url.size() > longest_url || url.find('\0') != std::string::npos || parsed == nullptr ||
      curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return "is no URL";
  if (part_of(parsed.get(), CURLUPART_SCHEME) != "https") return "is no https:// URL";
  if (!part_of(parsed.get(), CURLUPART_USER).empty() || !part_of(parsed.get(), CURLUPART_PASSWORD).empty())
    return "names a user";
  const auto port = part_of(parsed.get(), CURLUPART_PORT);
  if (!port.empty() && port != "443") return "names another port than 443";
  file.host = lower_case(part_of(parsed.get(), CURLUPART_HOST));
  if (!is_name(file.host) || !is_allowed(file.host, hosts))
    return "names a host that is not in submission.attachment_hosts";
  file.url = part_of(parsed.get(), CURLUPART_URL);
  return {};
}

bool is_public_address(const sockaddr& address) {
  std::array<std::uint8_t, 16> bytes{};
  const auto is_special = [&](const Block& block) { return is_in(bytes, block); };
  if (address.sa_family == AF_INET) {
    sockaddr_in given{};
    std::memcpy(&given, &address, sizeof given);
    std::memcpy(bytes.data(), &given.sin_addr, sizeof given.sin_addr);
    return std::ranges::none_of(special_4, is_special);
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 given{};
  std::memcpy(&given, &address, sizeof given);
  std::memcpy(bytes.data(), &given.sin6_addr, sizeof given.sin6_addr);
  return is_in(bytes, global_6) && std::ranges::none_of(special_6, is_special);
}

}  // namespace mailroom::http_door
