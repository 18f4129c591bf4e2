// The URL of a cluster, as sink.to and sink.monitor have it, and the names that a batch has there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/server_url.hpp"

namespace mailroom {

/// Reads the value of the setting `key` as parse_server_url() does.
ServerUrl parse_broker_url(std::string_view text, const std::vector<UrlScheme>& schemes,
                           std::string_view key = "sink.to");

/// Throws Error(configuration) if a server is not on this host: lines hold tokens, and go over a network only
/// with TLS.
void require_loopback(const ServerUrl& url, const char* hint);

/// `text` with `{queue}` and `{action}` replaced.
std::string filled_name(std::string_view text, std::string_view queue, std::string_view action);

}  // namespace mailroom
