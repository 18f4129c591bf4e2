// Files of a request.
#pragma once

#include <variant>

#include "base/json.hpp"
#include "http_door/shape.hpp"

namespace mailroom::resend_api {

/// As mailroom_send() takes them.
std::variant<nlohmann::json, http_door::Fault> read_attachments(const nlohmann::json& files);

}  // namespace mailroom::resend_api
