// A name of another site may point to this host, and a browser would send what that site wants.

#include "process/own_host.hpp"

namespace mailroom::process {

bool is_loopback(const config::ListenAddress& address) {
  return address.is_unix() || address.host.starts_with("127.") || address.host == "::1";
}

bool names_this_host(std::string_view host) {
  const auto name =
      host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  const bool is_address =
      name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_address || name == "localhost" || name == "[::1]";
}

}  // namespace mailroom::process
