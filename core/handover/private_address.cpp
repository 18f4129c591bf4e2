#include "handover/private_address.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <span>

namespace mailroom {
namespace {

using Bytes = std::span<const std::uint8_t>;

struct Network {
  std::array<std::uint8_t, 16> prefix;
  unsigned bits;
};

constexpr std::array<Network, 15> special_ipv4{{{{0}, 8},
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

/// Only 2000::/3 is given out; these are the special ones within it.
constexpr Network global_ipv6{{0x20}, 3};
constexpr std::array<Network, 3> special_ipv6{
    {{{0x20, 0x01, 0x00}, 23}, {{0x20, 0x01, 0x0d, 0xb8}, 32}, {{0x3f, 0xff}, 20}}};

struct Embedding {
  Network network;
  std::size_t at;  ///< of the IPv4 address within that of IPv6
};

/// Compatible and mapped addresses, NAT64 (RFC 6052) and 6to4 (RFC 3056).
constexpr std::array<Embedding, 4> embeddings{{{{{}, 96}, 12},
                                               {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96}, 12},
                                               {{{0, 0x64, 0xff, 0x9b}, 96}, 12},
                                               {{{0x20, 0x02}, 16}, 2}}};

bool is_in(const Network& network, Bytes address) {
  const auto whole = network.bits / 8;
  if (!std::equal(address.begin(), address.begin() + whole, network.prefix.begin())) return false;
  if (network.bits % 8 == 0) return true;
  const auto shift = 8 - network.bits % 8;
  return address[whole] >> shift == network.prefix.at(whole) >> shift;
}

bool is_private_ipv4(Bytes address) {
  return std::ranges::any_of(special_ipv4, [&](const auto& network) { return is_in(network, address); });
}

bool is_private_ipv6(Bytes address) {
  for (const auto& embedding : embeddings) {
    if (is_in(embedding.network, address)) return is_private_ipv4(address.subspan(embedding.at, 4));
  }
  return !is_in(global_ipv6, address) ||
         std::ranges::any_of(special_ipv6, [&](const auto& network) { return is_in(network, address); });
}

}  // namespace

bool is_private_address(const sockaddr& address) {
  std::array<std::uint8_t, 16> bytes{};
  if (address.sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    std::memcpy(bytes.data(), &ipv4.sin_addr, 4);
    return is_private_ipv4(Bytes(bytes).first(4));
  }
  if (address.sa_family != AF_INET6) return true;
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, &address, sizeof ipv6);
  std::memcpy(bytes.data(), &ipv6.sin6_addr, 16);
  return is_private_ipv6(bytes);
}

}  // namespace mailroom
