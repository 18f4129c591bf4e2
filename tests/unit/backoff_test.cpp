#include <algorithm>
#include <set>
#include <vector>

#include "process/retry.hpp"
#include "support/catch.hpp"

namespace mailroom::test::backoff_test {
namespace {

constexpr int seeds = 500;

std::vector<Milliseconds::rep> delays(process::Backoff& backoff, int count) {
  std::vector<Milliseconds::rep> all;
  for (int i = 0; i < count; ++i)
    all.push_back(backoff.next().count());
  return all;
}

}  // namespace

TEST_CASE("each delay is in the upper half of a bound that doubles from 50 ms to 1 s and stays there") {
  const std::vector<Milliseconds::rep> bounds{50, 100, 200, 400, 800, 1000, 1000, 1000, 1000};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    INFO("seed " << seed);
    process::Backoff backoff(seed);
    for (const auto bound : bounds) {
      const auto delay = backoff.next().count();
      REQUIRE(delay >= bound / 2);
      REQUIRE(delay <= bound);
    }
  }
}

TEST_CASE("the maximum delay holds for any number of attempts") {
  process::Backoff backoff(11);
  const auto all = delays(backoff, 20'000);
  CHECK(*std::max_element(all.begin(), all.end()) <= 1000);
  CHECK(*std::min_element(all.begin() + 5, all.end()) >= 500);
  CHECK(std::set(all.begin() + 5, all.end()).size() > 400);
}

TEST_CASE("after a reset the delays are short again") {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    INFO("seed " << seed);
    process::Backoff backoff(seed);
    delays(backoff, static_cast<int>(seed % 12));
    backoff.reset();
    CHECK(backoff.next().count() <= 50);
    CHECK(backoff.next().count() <= 100);
  }
}

TEST_CASE("a seed repeats its delays, and collectors with other seeds reconnect at other times") {
  process::Backoff one(3), again(3);
  CHECK(delays(one, 50) == delays(again, 50));
  std::set<Milliseconds::rep> tenth;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    process::Backoff backoff(seed);
    tenth.insert(delays(backoff, 10).back());
  }
  CHECK(tenth.size() > seeds / 4);
}

}  // namespace mailroom::test::backoff_test
