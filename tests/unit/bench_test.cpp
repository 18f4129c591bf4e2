#include "bench/collected.hpp"
#include "bench/targets.hpp"
#include "support/catch.hpp"

namespace mailroom::test::bench_test {

using namespace mailroom::bench;

TEST_CASE("the tokens of a collected line are read in groups of five") {
  std::vector<std::string> logins;
  read_line("1,a@bench.example,a,T1,00001,2,b@bench.example,b,T2,00002", [&](const CollectedToken& token) {
    logins.emplace_back(token.login);
    CHECK(token.code.size() == 5);
  });
  CHECK(logins == std::vector<std::string>{"a", "b"});
  CHECK_THROWS(read_line("1,a@bench.example,a,T1", [](const CollectedToken&) {}));
}

TEST_CASE("a series is summarised by its median, minimum and maximum") {
  const auto odd = spread_of({5, 1, 3});
  CHECK(odd.median == 3);
  CHECK(odd.min == 1);
  CHECK(odd.max == 5);
  CHECK(spread_of({4, 1, 2, 3}).median == 2.5);
}

TEST_CASE("a ratio is computed run by run, and only if both figures were measured") {
  Results results;
  results.add("drain/10000", {{.value = 30, .unit = "tokens/s"}});
  CHECK(judge(results).empty());
  // In the second run the machine was half as fast, for both rows.
  results.add("drain/10000", {{.value = 15, .unit = "tokens/s"}});
  results.add("copy/plain", {{.value = 60, .unit = "tokens/s"}});
  results.add("copy/plain", {{.value = 30, .unit = "tokens/s"}});
  const auto verdicts = judge(results);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].measured.min == 0.5);
  CHECK(verdicts[0].measured.max == 0.5);
  CHECK(verdicts[0].reached);
}

TEST_CASE("a figure above its maximum does not reach its target") {
  Results results;
  results.add("latency/100", {{"p50", 1.6, "ms"}, {"p99", 4.9, "ms"}});
  const auto verdicts = judge(results);
  REQUIRE(verdicts.size() == 2);
  CHECK_FALSE(verdicts[0].reached);
  CHECK(verdicts[1].reached);
}

}  // namespace mailroom::test::bench_test
