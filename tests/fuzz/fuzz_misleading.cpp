// Whatever others chose: neither text for people nor JSON lets a character through that misleads.

#include "base/json.hpp"
#include "base/printable.hpp"
#include "fuzz/fuzz.hpp"
#include "support/misleading_text.hpp"

namespace mailroom::fuzz::fuzz_misleading {
namespace {

template <typename Json>
void check_json(const Json& value) {
  const auto text = json_text(value);
  require(test::found_misleading(text).empty(), "JSON holds nothing that misleads");
  require(text.find_first_of("\n\t") == std::string::npos, "JSON is one line");
  const auto plain = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  require(Json::parse(text) == Json::parse(plain), "JSON keeps its value");
}

/// Without the colours that a whole output may have.
std::string without_colours(std::string text) {
  for (auto at = text.find("\x1b["); at != std::string::npos; at = text.find("\x1b[", at)) {
    const auto end = text.find_first_not_of("0123456789;", at + 2);
    require(end != std::string::npos && text[end] == 'm', "of all sequences only colours stay");
    text.erase(at, end + 1 - at);
  }
  return text;
}

int run(const std::uint8_t* data, std::size_t size) {
  const std::string text(text_of(data, size));
  for (const auto& shown : {printable(text), shown_text(text)}) {
    require(test::found_misleading(shown).empty(), "text holds nothing that misleads");
    require(shown.find_first_of("\n\t") == std::string::npos, "text is one line");
    require(is_utf8(shown), "text is UTF-8");
  }
  const auto lines = printable_lines(text);
  require(is_utf8(lines), "lines are UTF-8");
  require(printable_lines(lines) == lines, "filtering again changes nothing");
  // Taking a colour out may join what was before and behind it to another one.
  auto rest = lines;
  for (auto next = without_colours(rest); next != rest; next = without_colours(rest))
    rest = next;
  require(test::found_misleading(rest).empty(), "lines hold nothing that misleads but colours");
  check_json(nlohmann::json{{"key", text}, {text, 1}});
  check_json(nlohmann::ordered_json::array({text, {{text, text}}}));
  return 0;
}

const Target target("misleading", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_misleading
