// What one object of a request says of a mail, as the arguments of mailroom_send().
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "http_door/shape.hpp"

namespace mailroom::resend_api {

/// A mail, and what its headers say beside.
struct ReadMail {
  nlohmann::json arguments{};
  std::optional<std::string> key{};
  std::vector<http_door::RemoteFile> files{};
};

std::variant<ReadMail, http_door::Fault> read_mail(const nlohmann::json& object,
                                                   const http_door::RoleView& role,
                                                   const http_door::Defaults& defaults);

/// The moment of `scheduled_at`; a Fault for one that is none, has passed, or is more than a year ahead.
std::variant<Moment, http_door::Fault> read_schedule(const nlohmann::json& value,
                                                     const http_door::Defaults& defaults);

}  // namespace mailroom::resend_api
