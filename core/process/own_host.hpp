// Which addresses and names are always this host's, for pages that are for its browsers alone.
#pragma once

#include <string_view>

#include "config/listen_address.hpp"

namespace mailroom::process {

/// True if only this host can connect.
bool is_loopback(const config::ListenAddress& address);

/// True for the names and addresses of this host that a header `Host` may have, with or without a port:
/// `127.0.0.1.example` is none of them.
bool names_this_host(std::string_view host);

}  // namespace mailroom::process
