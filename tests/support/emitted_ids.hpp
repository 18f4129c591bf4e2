// The tokens in lines of JSON that a collector wrote.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "base/text.hpp"

namespace mailroom::test {

/// Calls `found(id, rest)` for each token of `lines`; `rest` is the text behind its id. Throws for a line
/// without an end. Reads by hand: a parser takes the sanitizers half a minute for ten megabytes.
template <typename Found>
void for_each_emitted(std::string_view lines, Found found) {
  constexpr std::string_view key = "{\"id\":";  // in a string its quotes would stand behind backslashes
  if (!lines.empty() && lines.back() != '\n') throw std::runtime_error("the last line has no end");
  for (auto at = lines.find(key); at != std::string_view::npos; at = lines.find(key, at)) {
    at += key.size();
    const auto end = lines.find(',', at);
    const auto id = parse_number<std::int64_t>(lines.substr(at, end - at));
    if (!id) throw std::runtime_error("a token's id is no number");
    found(*id, lines.substr(end));
  }
}

}  // namespace mailroom::test
