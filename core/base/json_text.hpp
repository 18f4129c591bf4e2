#pragma once

#include <string>

#include "base/moment.hpp"
#include "base/printable.hpp"

namespace mailroom {

/// `value`, of nlohmann::json or ordered_json, as JSON on one line: bytes that are no UTF-8 are replaced, and
/// what could mislead is escaped.
template <typename Json>
std::string json_text(const Json& value) {
  return escaped_json(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// `seconds` since 1970 as a time; null where it has no year of four digits.
template <typename Json>
Json moment_json(std::int64_t seconds) {
  const auto text = date_text(seconds);
  return text ? Json(*text) : Json(nullptr);
}

}  // namespace mailroom
