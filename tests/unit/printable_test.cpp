// Untrusted text in text output and in JSON: none of it controls a terminal or is invisible.

#include "base/printable.hpp"

#include "base/json.hpp"
#include "support/catch.hpp"
#include "support/misleading_text.hpp"

namespace mailroom::test::printable_test {

TEST_CASE("each misleading character is a question mark in text and an escape in JSON") {
  for (const auto& character : misleading_characters()) {
    INFO(ascii_json(nlohmann::json(character)));
    CHECK(printable("a" + character + "b") == "a?b");
    const auto json = json_text(nlohmann::json("a" + character + "b"));
    CHECK(json.size() >= 6);
    CHECK(found_misleading(json).empty());
    CHECK(parse_json(json) == "a" + character + "b");
  }
}

TEST_CASE("a byte that is not UTF-8 is a question mark, and its neighbours stay") {
  CHECK(printable("gr\xC3\xBCn caf\xE9") == "gr\xC3\xBCn caf?");
  CHECK(printable("\xE2\x80") == "??");
  CHECK(printable("\xC2\x85\xE2\x80\xAE") == "??");
  CHECK(json_text(nlohmann::json("caf\xE9")) == "\"caf\xEF\xBF\xBD\"");
}

TEST_CASE("text in any language and emoji are unchanged") {
  for (const std::string text : {"plain", "grün", "日本語", "مرحبا", "😀", "\xC2\xA0", "\xEF\xBF\xBD"}) {
    CHECK(printable(text) == text);
    CHECK(printable_lines(text) == text);
    CHECK(json_text(nlohmann::json(text)) == "\"" + text + "\"");
  }
}

TEST_CASE("a whole output keeps its lines and colours, and no other control sequence") {
  CHECK(printable_lines("a\n\tb\x1b[1;31mred\x1b[0m\n") == "a\n\tb\x1b[1;31mred\x1b[0m\n");
  CHECK(printable_lines("\x1b[2J\x1b]0;title\x07\r\x1b[") == "?[2J?]0;title???[");
  CHECK(printable_lines("\xC2\x9B"
                        "2J") == "?2J");
}

TEST_CASE("untrusted text is cut at 1,000 columns, JSON is not") {
  const std::string most(1000, 'x');
  CHECK(shown_text(most) == most);
  CHECK(shown_text(most + "x") == std::string(999, 'x') + "…");
  CHECK(json_text(nlohmann::json(most + "x")).size() == 1003);
}

}  // namespace mailroom::test::printable_test
