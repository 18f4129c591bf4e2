// The HTTP server, at a TCP or unix socket, with which Prometheus and health checks ask a consumer.
#pragma once

#include <functional>
#include <string>

#include "process/http_listener.hpp"

namespace mailroom::metrics {

inline constexpr process::ListenWords metrics_words{.subject = "metrics",
                                                    .owner = "consumer",
                                                    .named_by = "--metrics and metrics.listen name",
                                                    .port = "9464"};

/// Makes the page that a request asks for by its path. It runs on a thread of the client, which it may hold
/// up, and must not throw.
using HttpPages = process::HttpHandler;

/// Serves pages, as HttpListener. A server of a loopback address refuses requests for other hosts: a web
/// page could send them.
class HttpServer {
 public:
  /// Throws as ListeningSocket().
  HttpServer(const config::ListenAddress& address, HttpPages pages);

  const config::ListenAddress& address() const { return listener_.address(); }

 private:
  process::HttpPage answer(const process::HttpCall& call) const;

  HttpPages pages_;
  bool is_loopback_;
  process::HttpListener listener_;
};

}  // namespace mailroom::metrics
