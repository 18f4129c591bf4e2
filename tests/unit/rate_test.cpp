#include "config/rate.hpp"

#include "support/catch.hpp"

namespace mailroom::test::rate_test {

using namespace std::chrono_literals;

TEST_CASE("a rate is a number in a unit of time or in a duration") {
  CHECK(parse_rate("14/s") == Rate{14, 1s});
  CHECK(parse_rate("100/min") == Rate{100, 1min});
  CHECK(parse_rate("5/h") == Rate{5, 1h});
  CHECK(parse_rate("1000000000/d") == Rate{1'000'000'000, 24h});
  CHECK(parse_rate("50000/30d") == Rate{50'000, 720h});
  CHECK(parse_rate("1/250ms") == Rate{1, 250ms});
  CHECK(parse_rate("0.38/s") == Rate{38, 100s});
  CHECK(parse_rate("1.5/min") == Rate{15, 10min});
  CHECK(parse_rate("2.50/h") == Rate{25, 10h});
  CHECK(parse_rate("7.0/d") == Rate{7, 24h});
  CHECK(parse_rate("0.000001/s") == Rate{1, 1'000'000s});
  CHECK(parse_rate("0.38/s")->gap().count() == Approx(1 / 0.38));
  CHECK(parse_rate("14/s")->gap().count() == Approx(1.0 / 14));
}

TEST_CASE("a text that is no rate is refused") {
  const std::string text =
      GENERATE("", "14", "/s", "14/", "0/s", "-1/s", "+1/s", "fast", "0", "1000000001/s", "0.0/s",
               "0.0000001/s", ".5/s", "5./s", "1.5/10s", "-0.5/s", "1.-5/s", "1.2.3/s", "1,5/s", "1e3/s",
               "1000000000.5/s", "14/0s", "14/y", "14/ s", " 14/s", "14/s ", "14/s/s");
  CAPTURE(text);
  CHECK_FALSE(parse_rate(text));
}

TEST_CASE("the text of a rate reads back as the same rate") {
  const std::string text = GENERATE("14/s", "100/min", "5/h", "7/d", "50000/30d", "1/250ms", "3/1m30s",
                                    "0.38/s", "1.5/min", "0.05/h", "12.034567/d", "10/10s", "10/10m");
  CHECK(format_rate(*parse_rate(text)) == text);
}

}  // namespace mailroom::test::rate_test
