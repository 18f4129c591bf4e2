// The HTTP server, at a TCP or unix socket, with which Prometheus and health checks ask a consumer.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "config/listen_address.hpp"

struct MHD_Daemon;

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

struct HttpPage {
  int status = 200;
  std::string text;
  const char* type = "text/plain; charset=utf-8";
};

/// Makes the page of a path. It runs on a thread of the client, which it may hold up, and must not throw.
using HttpPages = std::function<HttpPage(const std::string& path)>;

/// Serves pages, each client on a thread of its own, which holds up nobody. There are at most `most_clients`;
/// others are turned away until one of them has gone. One that neither sends nor takes anything goes after
/// `patience`. A server of a loopback address refuses requests for other hosts: a web page could send them.
class HttpServer {
 public:
  static constexpr unsigned most_clients = 64;
  static constexpr std::chrono::seconds patience{5};
  static constexpr std::size_t longest_head = 8192;

  /// Throws as ListeningSocket().
  HttpServer(const ListenAddress& address, HttpPages pages);
  /// Waits for the pages that are being made, and for no client.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const ListenAddress& address() const { return socket_.address(); }
  /// What is said to a client that asks for `path` with `method` names `hosts`, without ports and in small
  /// letters.
  HttpPage answer(const std::string& method, const std::string& path,
                  const std::vector<std::string>& hosts) const;

 private:
  ListeningSocket socket_;
  HttpPages pages_;
  bool is_loopback_;
  MHD_Daemon* daemon_;
};

}  // namespace mailroom
