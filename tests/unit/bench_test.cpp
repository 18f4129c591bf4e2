#include "bench/collected.hpp"
#include "bench/targets.hpp"
#include "support/catch.hpp"

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

TEST_CASE("a series is told by its median and its ends") {
  const auto odd = spread_of({5, 1, 3});
  CHECK(odd.median == 3);
  CHECK(odd.least == 1);
  CHECK(odd.most == 5);
  CHECK(spread_of({4, 1, 2, 3}).median == 2.5);
}

TEST_CASE("a ratio is judged run by run, and only where both figures were measured") {
  Results results;
  results.add("drain/10000", {{.value = 30, .unit = "tokens/s"}});
  CHECK(judge(results).empty());
  // The machine was half as fast in the second run, for both.
  results.add("drain/10000", {{.value = 15, .unit = "tokens/s"}});
  results.add("copy/plain", {{.value = 60, .unit = "tokens/s"}});
  results.add("copy/plain", {{.value = 30, .unit = "tokens/s"}});
  const auto verdicts = judge(results);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].measured.least == 0.5);
  CHECK(verdicts[0].measured.most == 0.5);
  CHECK(verdicts[0].reached);
}

TEST_CASE("what may be at the most is not reached above it") {
  Results results;
  results.add("latency/100", {{"p50", 1.6, "ms"}, {"p99", 4.9, "ms"}});
  const auto verdicts = judge(results);
  REQUIRE(verdicts.size() == 2);
  CHECK_FALSE(verdicts[0].reached);
  CHECK(verdicts[1].reached);
}
