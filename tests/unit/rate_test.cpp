#include "base/rate.hpp"

#include "support/catch.hpp"

using namespace mailroom;
using namespace std::chrono_literals;

TEST_CASE("a rate is a number in a unit of time or in a duration") {
  CHECK(parse_rate("14/s") == Rate{14, 1s});
  CHECK(parse_rate("100/min") == Rate{100, 1min});
  CHECK(parse_rate("5/h") == Rate{5, 1h});
  CHECK(parse_rate("1000000000/d") == Rate{1'000'000'000, 24h});
  CHECK(parse_rate("50000/30d") == Rate{50'000, 720h});
  CHECK(parse_rate("1/250ms") == Rate{1, 250ms});
  CHECK(parse_rate("14/s")->gap().count() == Approx(1.0 / 14));
}

TEST_CASE("a text that is no rate is refused") {
  const std::string text = GENERATE("", "14", "/s", "14/", "0/s", "-1/s", "+1/s", "1.5/s", "1000000001/s",
                                    "14/0s", "14/y", "14/ s", " 14/s", "14/s ", "14/s/s");
  CAPTURE(text);
  CHECK_FALSE(parse_rate(text));
}

TEST_CASE("the text of a rate reads back as the same rate") {
  const std::string text = GENERATE("14/s", "100/min", "5/h", "7/d", "50000/30d", "1/250ms", "3/1m30s");
  CHECK(format_rate(*parse_rate(text)) == text);
}
