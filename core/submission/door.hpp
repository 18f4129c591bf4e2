// Where clients come from, and as whom they mail.
#pragma once

#include <string>

#include "config/listen_address.hpp"

namespace mailroom::submission {

struct Door {
  config::ListenAddress address{};
  int fd = -1;  ///< that listens
  bool is_implicit_tls = false;
  std::string
      role{};  ///< of all clients, `*` for the user at the other end of a unix socket; empty: they log in
};

/// What `127.0.0.1:25=shop`, `smtps://[::1]:465` or a path says: an address, TLS from the first byte (also at
/// port 465), and the role of whoever connects there, or none. Throws Error(configuration).
Door parse_door(const std::string& text);

}  // namespace mailroom::submission
