// Parses CSV of RFC 4180, with five fields for each token, and lines of JSON.

#include "reconcile/output_line.hpp"

#include <nlohmann/json.hpp>

namespace mailroom {
namespace {

constexpr std::size_t fields_per_token = 5;
constexpr std::size_t token_field = 3;
constexpr std::size_t code_field = 4;

/// Takes one field of RFC 4180 from the front of `rest`, with the comma after it. False if it is malformed.
bool take_field(std::string_view& rest, std::string& field, bool& has_more) {
  field.clear();
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find(','), rest.size());
    field = rest.substr(0, end);
    has_more = end < rest.size();
    rest.remove_prefix(has_more ? end + 1 : end);
    return field.find('"') == std::string::npos;
  }
  rest.remove_prefix(1);
  for (;;) {
    const auto quote = rest.find('"');
    if (quote == std::string_view::npos) return false;
    field += rest.substr(0, quote);
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    field += '"';
    rest.remove_prefix(1);
  }
  has_more = rest.starts_with(',');
  if (has_more) rest.remove_prefix(1);
  return has_more || rest.empty();
}

std::optional<OutputLine> parse_csv_line(std::string_view rest) {
  OutputLine line;
  WrittenToken token;
  std::string field;
  bool has_more = true;
  for (std::size_t place = 0; has_more; place = (place + 1) % fields_per_token) {
    if (!take_field(rest, field, has_more)) return std::nullopt;
    if (place == 0 && field != "1" && field != "2") return std::nullopt;
    if (place == token_field) token.token = std::move(field);
    if (place == code_field) {
      token.code = std::move(field);
      line.tokens.push_back(std::move(token));
    }
    if (!has_more && place != code_field) return std::nullopt;
  }
  return line;
}

std::optional<OutputLine> parse_json_line(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("queue") || !json["queue"].is_string() ||
      !json.contains("tokens") || !json["tokens"].is_array())
    return std::nullopt;
  OutputLine line{.queue = json["queue"].get<std::string>()};
  for (const auto& each : json["tokens"]) {
    const bool is_token = each.is_object() && each.contains("token") && each["token"].is_string() &&
                          each.contains("code") && each["code"].is_string();
    if (!is_token) return std::nullopt;
    line.tokens.push_back({each["token"].get<std::string>(), each["code"].get<std::string>()});
  }
  return line;
}

}  // namespace

std::optional<OutputLine> parse_output_line(std::string_view line) {
  return line.starts_with('{') ? parse_json_line(line) : parse_csv_line(line);
}

}  // namespace mailroom
