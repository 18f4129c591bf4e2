// How all JSON output is written: on one line, without invalid UTF-8 or misleading characters.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/printable.hpp"

namespace mailroom {

/// `value` (nlohmann::json or ordered_json) as JSON on one line. Invalid UTF-8 is replaced, misleading
/// characters are escaped: see escaped_json().
template <typename Json>
std::string json_text(const Json& value) {
  return escaped_json(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// `value`, or null without one.
template <typename Json, typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// An array of what `json_of` returns for each of `values`.
template <typename Json, typename Values, typename JsonOf>
Json array_json(const Values& values, const JsonOf& json_of) {
  auto array = Json::array();
  for (const auto& value : values)
    array.push_back(json_of(value));
  return array;
}

/// `moment` as a date and time; null outside the years 0000 to 9999.
template <typename Json>
Json moment_json(Moment moment) {
  return optional_json<Json>(date_text(moment));
}

}  // namespace mailroom
