#pragma once

#include <string>

#include "base/printable.hpp"

namespace mailroom {

/// `value`, of nlohmann::json or ordered_json, as JSON on one line: bytes that are no UTF-8 are replaced, and
/// what could mislead is escaped.
template <typename Json>
std::string json_text(const Json& value) {
  return escaped_json(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace mailroom
