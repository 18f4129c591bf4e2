// A password of sink.to is in a file of its own.

#include "carriers/broker_url.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"

namespace mailroom {

ServerUrl parse_broker_url(std::string_view text, const std::vector<UrlScheme>& schemes,
                           std::string_view key) {
  return parse_server_url(text, {.subject = key, .schemes = schemes, .password_key = "sink.password_file"});
}

void require_loopback(const ServerUrl& url, const char* hint) {
  for (const auto& server : url.servers) {
    if (server.is_loopback()) continue;
    throw Error(ExitCode::configuration,
                fmt::format("sink.to names {}, which is not on this host, without TLS", server.address()),
                hint);
  }
}

std::string filled_name(std::string_view text, std::string_view queue, std::string_view action) {
  std::string filled;
  while (!text.empty()) {
    const auto brace = std::min(text.find('{'), text.size());
    filled += text.substr(0, brace);
    text.remove_prefix(brace);
    if (text.starts_with("{queue}")) {
      filled += queue;
      text.remove_prefix(7);
    } else if (text.starts_with("{action}")) {
      filled += action;
      text.remove_prefix(8);
    } else if (!text.empty()) {
      filled += text.front();
      text.remove_prefix(1);
    }
  }
  return filled;
}

}  // namespace mailroom
