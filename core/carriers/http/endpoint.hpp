// Where webhooks go, checked before a token could cross a network in the clear.
#pragma once

#include <string>

#include "config/settings.hpp"

namespace mailroom {

/// Where requests go, and how.
struct HttpEndpoint {
  std::string url;
  std::string name;  ///< host:port
  std::string ca_file;
  std::string user_agent;
  std::string event_source;  ///< of CloudEvents; empty for none
  Milliseconds timeout{};
};

/// The endpoint of sink.to. Throws Error(configuration) for a URL that is malformed, has a user or a
/// fragment, or is http:// to another host than this one.
HttpEndpoint parse_http_endpoint(const Settings& settings);

}  // namespace mailroom
