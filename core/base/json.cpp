// JSON: how it is read, and how all JSON output is written.

#include "base/json.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace mailroom {
namespace {

template <typename Json>
std::string dumped(const Json& value, bool only_ascii) {
  return value.dump(-1, ' ', only_ascii, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}

nlohmann::json try_parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

nlohmann::ordered_json try_parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

void read_json(std::string_view text, JsonReader& reader) {
  nlohmann::json::sax_parse(text, &reader);
}

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string json_text(const nlohmann::json& value) {
  return escaped_json(plain_json(value));
}

std::string json_text(const nlohmann::ordered_json& value) {
  return escaped_json(plain_json(value));
}

void append_json_string(std::string& json, std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (!std::ranges::all_of(text, is_plain)) {
    json += json_text(nlohmann::json(text));
    return;
  }
  json.append(1, '"').append(text).append(1, '"');
}

std::string plain_json(const nlohmann::json& value) {
  return dumped(value, false);
}

std::string plain_json(const nlohmann::ordered_json& value) {
  return dumped(value, false);
}

std::string ascii_json(const nlohmann::json& value) {
  return dumped(value, true);
}

std::string ascii_json(const nlohmann::ordered_json& value) {
  return dumped(value, true);
}

}  // namespace mailroom
