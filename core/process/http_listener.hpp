// A socket that listens at an address of the configuration, with messages that say what is wrong with one,
// and a small HTTP server on it: what it answers is decided elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/listen_address.hpp"

struct MHD_Daemon;

namespace mailroom::process {

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
  ListeningSocket(const config::ListenAddress& address, const ListenWords& words);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int fd() const { return fd_; }
  /// With the port that was chosen.
  const config::ListenAddress& address() const { return address_; }

 private:
  [[noreturn]] void refuse(int error) const;
  [[noreturn]] void refuse_as_used() const;
  void listen_at_path();
  void listen_at_port();

  config::ListenAddress address_;
  ListenWords words_;
  int fd_ = -1;
};

/// A request, as far as it was read.
struct HttpCall {
  std::string method;
  std::string path;
  std::multimap<std::string, std::string, std::less<>> headers;  ///< by their names in lower case
  std::string body;                                              ///< of a listener that reads bodies
  std::map<std::string, std::string, std::less<>> query{};       ///< decoded; of two of a name the first
  std::string peer{};  ///< the address of the client; empty for a unix socket

  /// The value of the first header of that name, in lower case; empty without it.
  std::string_view header(std::string_view name) const;
};

struct HttpPage {
  int status = 200;
  std::string text;
  const char* type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers{};  ///< beside the type and those of every page
};

/// Answers a request. It runs on a thread of the client, which it may hold up, and must not throw.
using HttpHandler = std::function<HttpPage(const HttpCall&)>;

/// Serves clients, each on a thread of its own, which holds up nobody. There are at most `most_clients`;
/// others are turned away until one of them has gone. One that neither sends nor takes anything goes after
/// the patience of the options.
class HttpListener {
 public:
  static constexpr unsigned most_clients = 64;
  /// A client that sends its body for longer is cut off.
  static constexpr std::chrono::seconds body_patience{20};
  static constexpr std::size_t longest_head = 8192;

  struct Options {
    ListenWords words;
    const char* methods;           ///< that are answered, for the header Allow
    std::size_t longest_body = 0;  ///< 0: no body is read, and a request is answered when its head has come
    std::chrono::seconds patience{5};  ///< longer than the handler takes
  };

  /// Throws as ListeningSocket().
  HttpListener(const config::ListenAddress& address, const Options& options, HttpHandler handler);
  /// Waits for the answers that are being made, and for no client.
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  const config::ListenAddress& address() const { return socket_.address(); }
  const Options& options() const { return options_; }
  HttpPage answer(const HttpCall& call) const { return handler_(call); }

 private:
  ListeningSocket socket_;
  Options options_;
  HttpHandler handler_;
  MHD_Daemon* daemon_;
};

}  // namespace mailroom::process
