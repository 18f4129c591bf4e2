// Files of a request.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "http_door/shape.hpp"

namespace mailroom::resend_api {

/// As mailroom_send() takes them.
std::variant<nlohmann::json, http_door::Fault> read_attachments(const nlohmann::json& files,
                                                                const std::vector<std::string>& hosts,
                                                                std::vector<http_door::RemoteFile>& remote);

}  // namespace mailroom::resend_api
