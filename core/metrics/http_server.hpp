// A small HTTP server, with which Prometheus and health checks ask a consumer.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "metrics/http_request.hpp"
#include "metrics/listening_socket.hpp"

namespace mailroom {

struct HttpPage {
  int status = 200;
  std::string text;
  const char* type = "text/plain; charset=utf-8";
};

/// The pages of a server.
class HttpPages {
 public:
  virtual ~HttpPages() = default;

  /// nullopt if the page is not ready: it is asked for again when fd() is readable. Not with `last_chance`.
  virtual std::optional<HttpPage> page(const std::string& path, bool last_chance) = 0;
  /// Readable when pages may have become ready; take_ready() ends that.
  virtual int fd() const = 0;
  virtual void take_ready() = 0;
};

/// Serves pages on a thread of its own, which holds up nobody. A client has seconds to send its request and
/// to take its page. There are at most `most_clients`: a new one takes the place of the one that has been
/// slowest.
class HttpServer {
 public:
  static constexpr std::size_t most_clients = 64;
  static constexpr Milliseconds patience{5000};       ///< for the request, and again for its page to be taken
  static constexpr Milliseconds page_patience{3000};  ///< for a page to be ready

  /// Throws as ListeningSocket(). `pages` must outlive this.
  HttpServer(const ListenAddress& address, HttpPages& pages);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const ListenAddress& address() const { return socket_.address(); }

 private:
  struct Client;

  void serve();
  /// Waits for a socket or a deadline; false at the end.
  bool wait();
  void admit();
  void read(Client& client);
  void answer(Client& client, bool last_chance);
  void write(Client& client);
  void work_on(Client& client, short events, bool is_ready, TimePoint now);

  ListeningSocket socket_;
  HttpPages& pages_;
  bool is_loopback_;
  int end_;  ///< an eventfd, readable when this ends
  std::list<Client> clients_;
  std::thread thread_;
};

}  // namespace mailroom
