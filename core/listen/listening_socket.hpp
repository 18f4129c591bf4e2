// A socket that listens at an address of the configuration, with messages that say what is wrong with one.
#pragma once

#include "config/listen_address.hpp"

namespace mailroom {

/// How messages name what is served, and where.
struct ListenWords {
  const char* subject;   ///< `metrics`
  const char* owner;     ///< who needs an address of its own: `consumer`
  const char* named_by;  ///< the options that name the address
  const char* port;      ///< one that needs no privilege
};

/// A socket that listens. That of a unix socket is removed at the end.
class ListeningSocket {
 public:
  /// Replaces a unix socket on which nobody listens any more. Throws Error(locked) if the address is in use,
  /// Error(configuration) if it is none of this host, its port needs a privilege, or the path is something
  /// else than a socket or cannot be created.
  ListeningSocket(const ListenAddress& address, const ListenWords& words);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int fd() const { return fd_; }
  /// With the port that was chosen.
  const ListenAddress& address() const { return address_; }

 private:
  [[noreturn]] void refuse(int error) const;
  [[noreturn]] void refuse_as_used() const;
  void listen_at_path();
  void listen_at_port();

  ListenAddress address_;
  ListenWords words_;
  int fd_ = -1;
};

}  // namespace mailroom
