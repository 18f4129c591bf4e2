// Lines of COPY's text format.

#include <array>
#include <random>
#include <stdexcept>
#include <vector>

#include "db/pqxx_compat.hpp"
#include "support/catch.hpp"

namespace mailroom::test::copy_line_test {
namespace {

std::vector<std::string> split(std::string line, std::size_t count) {
  std::vector<std::string_view> fields(count);
  db::split_copy_line(line, fields);
  return {fields.begin(), fields.end()};
}

/// Escapes a value as COPY TO does.
std::string escaped(std::string_view value) {
  constexpr std::string_view characters = "\b\f\n\r\t\v\\";
  constexpr std::string_view letters = "bfnrtv\\";
  std::string text;
  for (const char c : value) {
    const auto at = characters.find(c);
    if (at != std::string_view::npos) text += '\\';
    text += at == std::string_view::npos ? c : letters[at];
  }
  return text;
}

}  // namespace

TEST_CASE("a line of COPY is split at its tabs, and unescaped") {
  struct Case {
    std::string line;
    std::vector<std::string> fields;
  };
  const std::vector<Case> cases{
      {"", {""}},
      {"a", {"a"}},
      {"a\tb", {"a", "b"}},
      {"\t", {"", ""}},
      {"1\t\\\\x00ff\tz", {"1", "\\x00ff", "z"}},
      {"\\N\tb", {"", "b"}},
      {"\\\\N", {"\\N"}},
      {"a\\tb\\nc\\rd\\be\\ff\\vg", {"a\tb\nc\rd\be\ff\vg"}},
      {"\\\\\t\\\\\\\\", {"\\", "\\\\"}},
      {"\\q", {"q"}},
      {"ü\tß", {"ü", "ß"}},
  };
  for (const auto& c : cases) {
    INFO(c.line);
    CHECK(split(c.line, c.fields.size()) == c.fields);
  }
}

TEST_CASE("a line of COPY with more or fewer fields than expected is refused, and so is a lone backslash") {
  CHECK_THROWS_AS(split("a\tb", 1), std::invalid_argument);
  CHECK_THROWS_AS(split("a\tb", 3), std::invalid_argument);
  CHECK_THROWS_AS(split("a\t", 1), std::invalid_argument);
  CHECK_THROWS_AS(split("a\\", 1), std::invalid_argument);
}

TEST_CASE("any values that COPY has escaped are read back") {
  const std::string alphabet = "ab\\\t\n\r\b\f\v\"N,";
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<std::string> values(1 + random() % 4);
    std::string line;
    for (auto& value : values) {
      for (auto length = random() % 6; length > 0; --length)
        value += alphabet[random() % alphabet.size()];
      line += (&value == &values.front() ? "" : "\t") + escaped(value);
    }
    CHECK(split(line, values.size()) == values);
  }
}

}  // namespace mailroom::test::copy_line_test
