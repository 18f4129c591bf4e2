// A file of another server that a request names: which ones may be fetched.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace mailroom::http_door {

/// One that may be fetched, and its place among the files of the mail.
struct RemoteFile {
  std::string url{};
  std::string host{};  ///< in lower case
  std::size_t place = 0;
};

/// Reads a URL into `file`. Returns why it may not be fetched, or nothing: it is HTTPS at port 443, without a
/// user, of one of `hosts`, which are names, with `*.` in front for all below one.
std::string problem_of_url(const std::string& url, const std::vector<std::string>& hosts, RemoteFile& file);

/// True if `host` is a name that `hosts` may have.
bool is_host_pattern(std::string_view host);

/// True for a global unicast address. What leads back into a network of our own, or to another protocol's
/// addresses, is none.
bool is_public_address(const sockaddr& address);

}  // namespace mailroom::http_door
