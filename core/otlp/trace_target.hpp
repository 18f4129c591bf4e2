// Where spans go: the URL, what each request says besides, such as the key of a hosted collector, and of
// which instance the spans are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carriers/http/exchange.hpp"
#include "config/settings.hpp"

namespace mailroom::otlp {

/// Where a collector of traces is: `url` is trace.endpoint, and has /v1/traces added if it has no path. With
/// secret content it must be https:// unless it is on this host. Throws Error(configuration).
http::HttpEndpoint trace_endpoint(const std::string& url,
                                  http::HttpContent content = http::HttpContent::harmless);

/// What requests have, and spans belong to.
struct TraceTarget {
  http::HttpEndpoint endpoint;
  std::vector<std::string> headers{};  ///< each `Name: value`
  std::string resource{};              ///< attributes, JSON that continues a list
};

/// That of the settings. The headers are those of trace.headers_file, or else of
/// OTEL_EXPORTER_OTLP_TRACES_HEADERS, or else of OTEL_EXPORTER_OTLP_HEADERS. Throws Error(configuration).
TraceTarget trace_target(const config::Settings& settings);

/// `Name: value` of each line that is neither blank nor begins with #. Throws Error(configuration) for
/// others; `source` names the text.
std::vector<std::string> headers_of_lines(std::string_view text, const std::string& source);
/// The same of `name=value,name=value`, where %20 is a blank.
std::vector<std::string> headers_of_pairs(std::string_view text, const std::string& source);

/// The attributes of an environment, if it is not empty, and an instance.
std::string resource_attributes(std::string_view environment, std::string_view instance);

/// Why the collector of traces does not take what it has answered or not answered; empty if it does. Says so
/// if this is a port of gRPC.
std::string trace_problem(const http::HttpOutcome& outcome);

/// Sends a request without spans. Why it is not taken; empty if it is.
std::string try_target(const TraceTarget& target);

}  // namespace mailroom::otlp
