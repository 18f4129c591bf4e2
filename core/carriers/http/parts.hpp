// How a message of several mails leaves again when the server has refused it for one of them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "delivery/carrier.hpp"

namespace mailroom::http {

/// True if all mails of a message have one sender.
bool is_of_one_sender(const delivery::Message& message);

/// A refused message as several, so that few requests find which of many mails it is for: in four parts, or
/// so that a sender's mails stay together if `by_sender`. There, `bytes` keeps the bodies in their new order.
std::vector<delivery::Message> parts_of(const delivery::Message& message, bool by_sender,
                                        std::deque<std::string>& bytes);

}  // namespace mailroom::http
