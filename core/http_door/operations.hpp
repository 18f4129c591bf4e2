// What requests ask that store nothing new: a message, a list, another time, an end.
#pragma once

#include <variant>

#include "http_door/keyed_session.hpp"
#include "http_door/shape.hpp"

namespace mailroom::http_door {

/// As the role of the credentials.
std::variant<Answer, Fault> answer_to(const Operation& operation, const Credentials& credentials,
                                      const Shape& shape, const Defaults& defaults, KeyedSession& session);

}  // namespace mailroom::http_door
