#include "base/line_splitter.hpp"

#include <random>
#include <sstream>
#include <vector>

#include "support/catch.hpp"

using namespace mailroom;

namespace {

using Lines = std::vector<std::string>;

/// The lines of `pieces`, which are added in order.
Lines split(const Lines& pieces, std::size_t max_size = 8) {
  Lines lines;
  LineSplitter splitter(max_size);
  const auto each = [&](std::string_view line) { lines.emplace_back(line); };
  for (const auto& piece : pieces)
    splitter.add(piece, each);
  splitter.finish(each);
  return lines;
}

}  // namespace

TEST_CASE("a stream is split into lines, wherever it is cut") {
  CHECK(split({}) == Lines{});
  CHECK(split({"", ""}) == Lines{});
  CHECK(split({"\n"}) == Lines{""});
  CHECK(split({"a\nb\n"}) == Lines{"a", "b"});
  CHECK(split({"a\nb"}) == Lines{"a", "b"});
  CHECK(split({"a", "b", "\n", "\n", "c"}) == Lines{"ab", "", "c"});
  CHECK(split({"12345678\n", "1234", "5678\n"}) == Lines{"12345678", "12345678"});
}

TEST_CASE("a line that is too long is cut one byte above the limit, and the next line is complete") {
  CHECK(split({"123456789abc\nnext\n"}) == Lines{"123456789", "next"});
  CHECK(split({"1234", "56789", "abc", "\nnext"}) == Lines{"123456789", "next"});
  CHECK(split({"123456789abc"}) == Lines{"123456789"});
}

TEST_CASE("random pieces of a stream give the same lines as getline") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    Lines pieces(1);
    for (std::size_t i = random() % 60; i > 0; --i) {
      const char c = "ab\n"[random() % 3];
      text += c;
      if (random() % 4 == 0) pieces.emplace_back();
      pieces.back() += c;
    }
    Lines expected;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      expected.push_back(line.substr(0, 9));
    CHECK(split(pieces) == expected);
  }
}

TEST_CASE("an endless line uses the memory of one line") {
  LineSplitter splitter(4096);
  const std::string piece(65536, 'x');
  int lines = 0;
  for (int i = 0; i < 200; ++i)
    splitter.add(piece, [&](std::string_view) { ++lines; });
  CHECK(lines == 0);
  CHECK(splitter.held() < 3 * 4096);
}
