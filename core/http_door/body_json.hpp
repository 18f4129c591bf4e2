// Reads the JSON of a request, and refuses what two readers could read differently.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/json.hpp"

namespace mailroom::http_door {

/// Why a body is no JSON that is taken.
struct BodyProblem {
  std::string words{};
};

/// An array of numbers from 0 to 255 becomes a binary value, since files come so: each number would take 16
/// octets. Refuses a depth of more than 32, a member that comes twice, and text that is no Unicode.
std::variant<nlohmann::json, BodyProblem> read_body(std::string_view text);

}  // namespace mailroom::http_door
