// JSON: how it is read, and how all JSON output is written. The parser and the writer of nlohmann-json are
// templates: they are compiled in json.cpp, and in no other file.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom {

/// `text` as a value. Throws nlohmann::json::parse_error, which knows the place.
nlohmann::json parse_json(std::string_view text);
/// Likewise, with the members of objects in the order of `text`.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// Likewise, or a value that is_discarded() if `text` is not JSON.
nlohmann::json try_parse_json(std::string_view text);
nlohmann::ordered_json try_parse_ordered_json(std::string_view text);

/// What read_json() tells of a text, value by value.
using JsonReader = nlohmann::json_sax<nlohmann::json>;
/// Reads `text` until its end or until `reader` returns false.
void read_json(std::string_view text, JsonReader& reader);

/// The text of the member `key` of `object`; empty if it is no text, or if there is none.
std::string text_at(const nlohmann::json& object, const char* key);

/// `value` as JSON on one line. Invalid UTF-8 is replaced, misleading characters are escaped: see
/// escaped_json().
std::string json_text(const nlohmann::json& value);
std::string json_text(const nlohmann::ordered_json& value);
/// Appends json_text() of a text, which costs little for one that has nothing to escape.
void append_json_string(std::string& json, std::string_view text);

/// Likewise for a program or the database: its characters as they are, but for invalid UTF-8.
std::string plain_json(const nlohmann::json& value);
std::string plain_json(const nlohmann::ordered_json& value);

/// Likewise, with all but ASCII as escapes.
std::string ascii_json(const nlohmann::json& value);
std::string ascii_json(const nlohmann::ordered_json& value);

/// `value`, or null without one.
template <typename Json, typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// `text`, or null for an empty one.
template <typename Json>
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
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
