#pragma once

#include <sys/socket.h>

namespace mailroom {

/// True for an address that is not one of the public Internet: loopback, private networks, link-local,
/// multicast and other special ones (RFC 6890), also as an IPv4 address within one of IPv6, and of another
/// family.
bool is_private_address(const sockaddr& address);

}  // namespace mailroom
