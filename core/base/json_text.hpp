#pragma once

#include <string>

#include "base/moment.hpp"
#include "base/printable.hpp"

namespace mailroom {

/// `value` (nlohmann::json or ordered_json) as JSON on one line. Invalid UTF-8 is replaced, misleading
/// characters are escaped: see escaped_json().
template <typename Json>
std::string json_text(const Json& value) {
  return escaped_json(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// `seconds` since 1970 as a date and time; null outside the years 0000 to 9999.
template <typename Json>
Json moment_json(std::int64_t seconds) {
  const auto text = date_text(seconds);
  return text ? Json(*text) : Json(nullptr);
}

}  // namespace mailroom
