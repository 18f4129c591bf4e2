// The CloudEvents headers of a line, for HTTP, NATS and AMQP alike.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "delivery/carrier.hpp"

namespace mailroom::carriers {

/// The context attributes of CloudEvents 1.0 that make a line an event, without datacontenttype: the same at
/// each attempt. None if `source` is empty.
std::vector<std::pair<std::string, std::string>> cloud_event_attributes(const delivery::Message& message,
                                                                        const std::string& source);

/// A value as the bindings of HTTP and NATS write it into a header: percent-encoded where it must be.
std::string cloud_event_header_value(std::string_view value);

}  // namespace mailroom::carriers
