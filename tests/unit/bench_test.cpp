#include <fmt/format.h>

#include "bench/collected.hpp"
#include "bench/comparison.hpp"
#include "bench/targets.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"

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

TEST_CASE("two builds are compared run by run, in the figures that both have") {
  const auto run = [](double rate, double time) {
    Turn turn;
    turn.ours = read_results(fmt::format(
        R"({{"rows": [{{"name": "drain/10", "unit": "tokens/s", "values": [{}]}},
                      {{"name": "growth/10/status", "unit": "s", "values": [{}]}},
                      {{"name": "new", "unit": "s", "values": [1]}}]}})",
        rate, time));
    turn.theirs.add("drain/10", {{.value = 100, .unit = "tokens/s"}});
    turn.theirs.add("growth/10/status", {{.value = 2, .unit = "s"}});
    return turn;
  };
  const auto rows = compare({run(90, 1), run(94, 2), run(98, 2.05)});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "drain/10");
  CHECK(rows[0].ratio.median == 0.94);
  CHECK(rows[0].ratio.min == 0.9);
  CHECK(rows[0].ratio.max == 0.98);
  CHECK(rows[0].is_worse);
  CHECK(rows[1].theirs.median == 2);
  CHECK(rows[1].ratio.median == 1);
  CHECK_FALSE(rows[1].is_worse);
  CHECK(compare({run(96, 2.2)})[1].is_worse);
  CHECK_FALSE(compare({run(96, 2.2)})[0].is_worse);
  const auto text = render_comparison(rows, "ac11d77");
  CHECK(text.find("ac11d77") != std::string::npos);
  CHECK(text.find("0.90 - 0.98") != std::string::npos);
}

TEST_CASE("scripts/bench refuses arguments that cannot be measured before it builds anything") {
  struct Refused {
    std::vector<std::string> arguments;
    const char* message;
  };
  const auto script = source_directory + "/scripts/bench";
  for (const auto& [arguments, message] : std::vector<Refused>{
           {{"--against"}, "bench: --against needs a value\n"},
           {{"--against", "no-such-commit"}, "bench: no commit is named \"no-such-commit\"\n"},
           {{"--against", "HEAD", "--rivals"}, "bench: --against does not go with --rivals\n"},
           {{"--against=HEAD", "--brokers"}, "bench: --against does not go with --brokers\n"},
           {{"--against", "HEAD", "--json", "x"}, "bench: --against does not go with --json\n"},
           {{"--against", "HEAD", "--list"}, "bench: --against does not go with --list\n"},
           {{"--runs", "0"}, "bench: --runs is not 1 to 100: 0\n"},
           {{"--runs=many"}, "bench: --runs is not 1 to 100: many\n"},
           {{"--minutes", "-1"}, "bench: --minutes is not a number: -1\n"}}) {
    std::vector<std::string> command{script};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto run = run_to_end(command, {});
    INFO(run.errors);
    CHECK(run.status == 2);
    CHECK(run.output == "");
    CHECK(run.errors.find(message) == 0);
    CHECK(run.errors.find("hint: ") != std::string::npos);
  }
  const auto help = run_to_end({script, "--help"}, {});
  CHECK(help.status == 0);
  CHECK(help.output.find("--against COMMIT") != std::string::npos);
}

}  // namespace mailroom::test::bench_test
