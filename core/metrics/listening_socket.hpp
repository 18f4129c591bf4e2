// The TCP or unix socket at which metrics are served.
#pragma once

#include "config/listen_address.hpp"

namespace mailroom {

/// A socket that listens. That of a unix socket is removed at the end.
class ListeningSocket {
 public:
  /// Replaces a unix socket on which nobody listens any more. Throws Error(locked) if the address is in use,
  /// Error(configuration) if it is none of this host, its port needs a privilege, or the path is something
  /// else than a socket or cannot be created.
  explicit ListeningSocket(const ListenAddress& address);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int fd() const { return fd_; }
  /// With the port that was chosen.
  const ListenAddress& address() const { return address_; }

 private:
  void listen_at_path();
  void listen_at_port();

  ListenAddress address_;
  int fd_ = -1;
};

}  // namespace mailroom
