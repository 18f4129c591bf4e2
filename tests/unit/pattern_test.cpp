// Patterns: each way to match and to replace, and what a group is that took no part.

#include "base/pattern.hpp"

#include "support/catch.hpp"

namespace mailroom::test::pattern_test {
namespace {

using Groups = Pattern::Groups;

struct Case {
  std::string expression;
  std::string text;
  std::optional<Groups> whole;
  std::optional<Groups> at_start;
  std::optional<Groups> first;
};

}  // namespace

TEST_CASE("a pattern matches all of a text, its start or a part of it") {
  const std::string with_zero("a\0b", 3);
  const std::vector<Case> cases{
      {"[a-z]+", "abc", Groups{"abc"}, Groups{"abc"}, Groups{"abc"}},
      {"[a-z]+", "abc1", {}, Groups{"abc"}, Groups{"abc"}},
      {"[a-z]+", "1abc2de", {}, {}, Groups{"abc"}},
      {"[a-z]+", "12", {}, {}, {}},
      {"[a-z]+", "ABC", {}, {}, {}},
      {"[a-z]*", "", Groups{""}, Groups{""}, Groups{""}},
      {"[a-z]+", "", {}, {}, {}},
      // The first alternative is taken unless the whole needs another.
      {"a|ab", "ab", Groups{"ab"}, Groups{"a"}, Groups{"a"}},
      {"(\\d+)h(?:(\\d+)m)?", "5h", Groups{"5h", "5", ""}, Groups{"5h", "5", ""}, Groups{"5h", "5", ""}},
      {"(a)|(b)", "b", Groups{"b", "", "b"}, Groups{"b", "", "b"}, Groups{"b", "", "b"}},
      {"(a*)b", "b", Groups{"b", ""}, Groups{"b", ""}, Groups{"b", ""}},
      {"\\bone\\b", "an one", {}, {}, Groups{"one"}},
      {"\\bone\\b", "none", {}, {}, {}},
      {".+", "a\nb", {}, Groups{"a"}, Groups{"a"}},
      {"[^b]+b", with_zero, Groups{with_zero}, Groups{with_zero}, Groups{with_zero}},
      {"µs", "5µs", {}, {}, Groups{"µs"}},
  };
  for (const auto& [expression, text, whole, at_start, first] : cases) {
    INFO(expression << " of " << text);
    const Pattern pattern(expression);
    CHECK(pattern.whole(text) == whole);
    CHECK(pattern.matches(text) == whole.has_value());
    CHECK(pattern.at_start(text) == at_start);
    CHECK(pattern.first(text) == first);
    CHECK(pattern.occurs_in(text) == first.has_value());
  }
}

TEST_CASE("a pattern finds all matches, none of which overlap") {
  CHECK(Pattern("a.").all("abacada").size() == 3);
  CHECK(Pattern("([a-z])=(\\d)?").all("a=1, b=, c=3") ==
        std::vector<Groups>{{"a=1", "a", "1"}, {"b=", "b", ""}, {"c=3", "c", "3"}});
  CHECK(Pattern("^a").all("aaa") == std::vector<Groups>{{"a"}});
  CHECK(Pattern("a*").all("ba") == std::vector<Groups>{{""}, {"a"}, {""}});
  CHECK(Pattern("a").all("").empty());
}

TEST_CASE("a replacement names groups and the match") {
  const Pattern word("([a-z])([a-z]*)");
  CHECK(word.replaced("one two", "$2-$1") == "ne-o wo-t");
  CHECK(word.replaced("one two", "<$&>") == "<one> <two>");
  CHECK(word.replaced("one two", "$$") == "$ $");
  CHECK(word.replaced("one two", "") == " ");
  CHECK(word.replaced("1 2", "x") == "1 2");
  CHECK(word.replaced("", "x").empty());
  CHECK(word.replaced_first("1 one two", "<$1>") == "1 <o> two");
  CHECK(word.replaced_first("1 2", "x") == "1 2");
}

TEST_CASE("a pattern tells upper from lower case unless it is told not to") {
  CHECK_FALSE(Pattern("select [a-z]").matches("SELECT a"));
  CHECK(Pattern("select [a-z]", LetterCase::ignored).matches("SELECT A"));
  CHECK(Pattern("Bearer", LetterCase::ignored).replaced("bearer BEARER", "$&.") == "bearer. BEARER.");
}

TEST_CASE("a copy of a pattern outlives the first") {
  const auto copied = [] {
    const Pattern first("[a-z]+");
    return std::pair<Pattern, int>(first, 0).first;
  }();
  CHECK(copied.matches("abc"));
}

TEST_CASE("an expression that is none is refused") {
  for (const std::string expression : {"(", "[a", "a{2", "*", "\\"}) {
    INFO(expression);
    CHECK_THROWS_AS(Pattern(expression), std::runtime_error);
  }
}

}  // namespace mailroom::test::pattern_test
