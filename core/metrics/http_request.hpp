// What a client asks of the metrics server, and whether it names this host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace mailroom {

/// What a client of the metrics asks for.
struct HttpRequest {
  std::string path;      ///< without a query
  std::string host;      ///< of the header Host, without its port; empty without the header
  bool is_head = false;  ///< only the header of the response is wanted
};

/// A request that is not answered, and why.
struct HttpRefusal {
  int status = 400;
  std::string text;  ///< one line
};

/// The longest head of a request.
constexpr std::size_t longest_http_head = 8192;

/// Reads the head of a request (RFC 9112); nullopt if more of it has to come. A body is ignored.
std::optional<std::variant<HttpRequest, HttpRefusal>> parse_http_request(std::string_view bytes);

/// True if `host` names this host's loopback: `localhost`, an address in 127.0.0.0/8, `::1`, or nothing. A
/// web page whose name leads to a loopback address sends another one.
bool is_loopback_name(std::string_view host);

}  // namespace mailroom
