// What becomes of lines when RabbitMQ closes a channel.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "delivery/carrier.hpp"

namespace mailroom::amqp {

/// The largest message that a server takes, as it says when it refuses a larger one.
std::optional<std::size_t> amqp_size_limit(std::string_view text);

/// A server closed the channel or the connection: what became of a line of `size` bytes that it has not
/// confirmed. `confirmed_some`: it has confirmed others on this channel.
delivery::Verdict judge_amqp_close(int code, std::string_view text, std::size_t size, bool confirmed_some);

}  // namespace mailroom::amqp
