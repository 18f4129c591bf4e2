#include "config/rate.hpp"

#include "support/catch.hpp"

namespace mailroom::test::rate_test {

using namespace std::chrono_literals;

TEST_CASE("a rate is a number in a unit of time or in a duration") {
  CHECK(config::parse_rate("14/s") == config::Rate{14, 1s});
  CHECK(config::parse_rate("100/min") == config::Rate{100, 1min});
  CHECK(config::parse_rate("5/h") == config::Rate{5, 1h});
  CHECK(config::parse_rate("1000000000/d") == config::Rate{1'000'000'000, 24h});
  CHECK(config::parse_rate("50000/30d") == config::Rate{50'000, 720h});
  CHECK(config::parse_rate("1/250ms") == config::Rate{1, 250ms});
  CHECK(config::parse_rate("0.38/s") == config::Rate{38, 100s});
  CHECK(config::parse_rate("1.5/min") == config::Rate{15, 10min});
  CHECK(config::parse_rate("2.50/h") == config::Rate{25, 10h});
  CHECK(config::parse_rate("7.0/d") == config::Rate{7, 24h});
  CHECK(config::parse_rate("0.000001/s") == config::Rate{1, 1'000'000s});
  CHECK(config::parse_rate("0.38/s")->gap().count() == Approx(1 / 0.38));
  CHECK(config::parse_rate("14/s")->gap().count() == Approx(1.0 / 14));
}

TEST_CASE("a text that is no rate is refused") {
  const std::string text =
      GENERATE("", "14", "/s", "14/", "0/s", "-1/s", "+1/s", "fast", "0", "1000000001/s", "0.0/s",
               "0.0000001/s", ".5/s", "5./s", "1.5/10s", "-0.5/s", "1.-5/s", "1.2.3/s", "1,5/s", "1e3/s",
               "1000000000.5/s", "14/0s", "14/y", "14/ s", " 14/s", "14/s ", "14/s/s");
  CAPTURE(text);
  CHECK_FALSE(config::parse_rate(text));
}

TEST_CASE("the text of a rate reads back as the same rate") {
  const std::string text = GENERATE("14/s", "100/min", "5/h", "7/d", "50000/30d", "1/250ms", "3/1m30s",
                                    "0.38/s", "1.5/min", "0.05/h", "12.034567/d", "10/10s", "10/10m");
  CHECK(config::format_rate(*config::parse_rate(text)) == text);
}

}  // namespace mailroom::test::rate_test
