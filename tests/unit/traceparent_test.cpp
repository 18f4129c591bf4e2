// Reads traceparents from applications: what the standard allows, and nothing else.

#include "trace/traceparent.hpp"

#include <fmt/format.h>
#include <random>

#include "base/encoded_text.hpp"
#include "support/catch.hpp"

namespace mailroom::test::traceparent_test {
namespace {

const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string span = "00f067aa0ba902b7";
const std::string usual = "00-" + trace + "-" + span + "-01";

}  // namespace

TEST_CASE("a traceparent names a trace, a span, and whether it is recorded") {
  const auto parent = trace::parse_traceparent(usual);
  REQUIRE(parent);
  CHECK(hex_text(parent->trace) == trace);
  CHECK(hex_text(parent->span) == span);
  CHECK(parent->is_sampled);
  CHECK_FALSE(trace::parse_traceparent("00-" + trace + "-" + span + "-00")->is_sampled);
  CHECK_FALSE(trace::parse_traceparent("00-" + trace + "-" + span + "-fe")->is_sampled);
  CHECK(trace::parse_traceparent("00-" + trace + "-" + span + "-ff")->is_sampled);
}

TEST_CASE("of a later version the known part is read, and what follows it is left") {
  for (const auto& text : {"01-" + trace + "-" + span + "-01", "cc-" + trace + "-" + span + "-01-what-ever",
                           "fe-" + trace + "-" + span + "-01-"}) {
    CAPTURE(text);
    CHECK(trace::parse_traceparent(text) == trace::parse_traceparent(usual));
  }
}

TEST_CASE("whatever is no traceparent is none") {
  const std::string zeros(32, '0');
  for (const auto& text : std::vector<std::string>{"",
                                                   "-",
                                                   "00",
                                                   "x",
                                                   usual + "0",
                                                   usual + "-",
                                                   usual + "-00",
                                                   usual.substr(1),
                                                   usual.substr(0, 54),
                                                   " " + usual,
                                                   usual + "\n",
                                                   "ff-" + trace + "-" + span + "-01",
                                                   "0g-" + trace + "-" + span + "-01",
                                                   "00-" + zeros + "-" + span + "-01",
                                                   "00-" + trace + "-" + zeros.substr(16) + "-01",
                                                   "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01",
                                                   "00_" + trace + "-" + span + "-01",
                                                   "00-" + trace + "_" + span + "-01",
                                                   "00-" + trace + "-" + span + "_01",
                                                   "00-" + trace + "-" + span + "-0x",
                                                   "00-" + trace + "-" + span + "-0" + std::string(1, '\0'),
                                                   "01-" + trace + "-" + span + "-01x",
                                                   std::string(1'000'000, '0'),
                                                   "ada@mail.example'; DROP TABLE tokens; --"}) {
    CAPTURE(text.substr(0, 100));
    CHECK_FALSE(trace::parse_traceparent(text));
  }
}

TEST_CASE("random texts are read without harm, and what is read says what it was read from") {
  std::mt19937 random(7);
  const std::string letters = "0123456789abcdefABg-_ \n\xff";
  int read = 0;
  for (int i = 0; i < 200'000; ++i) {
    auto text = usual;
    const auto changes = random() % 4;
    for (unsigned n = 0; n < changes; ++n)
      text[random() % text.size()] = letters[random() % letters.size()];
    if (random() % 8 == 0) text.resize(random() % 70, 'a');
    const auto parent = trace::parse_traceparent(text);
    if (!parent) continue;
    ++read;
    CHECK(text.substr(2).starts_with("-" + hex_text(parent->trace) + "-" + hex_text(parent->span) + "-"));
  }
  CHECK(read > 50'000);
}

}  // namespace mailroom::test::traceparent_test
