// Decodes names and values one by one; what is no code stays as it is.

#include "process/http_form.hpp"

#include <algorithm>

#include "base/encoded_text.hpp"
#include "base/text.hpp"

namespace mailroom::process {
namespace {

/// What %XX and + stand for.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0;
    if (is_code) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> form_fields(std::string_view body) {
  constexpr std::size_t most = 1000;
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto pair : split(trimmed(body), '&')) {
    if (pair.empty()) continue;
    if (fields.size() == most) break;
    const auto equals = std::min(pair.find('='), pair.size());
    fields.emplace_back(decoded(pair.substr(0, equals)),
                        decoded(pair.substr(std::min(equals + 1, pair.size()))));
  }
  return fields;
}

std::string client_of(const HttpCall& call) {
  const bool is_near = call.peer.empty() || call.peer == "127.0.0.1" || call.peer == "::1";
  const auto passed_on = split(call.header("x-forwarded-for"), ',');
  const auto last = passed_on.empty() ? std::string_view() : trimmed(passed_on.back());
  return is_near && !last.empty() ? std::string(last.substr(0, 64)) : call.peer;
}

}  // namespace mailroom::process
