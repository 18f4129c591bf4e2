// `mailroom collect` with ranges as limit and timeout. No timeout ends within a test: what is written was
// written at once, or was a full line.

#include <algorithm>
#include <numeric>

#include "support/catch.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::adaptive_collect_test {
namespace {

/// How many tokens each line has; a token has five fields.
std::vector<int> line_sizes(const TestCollector& collector) {
  std::vector<int> sizes;
  for (const auto& line : collector.lines())
    sizes.push_back((count(line, ",") + 1) / 5);
  return sizes;
}

}  // namespace

TEST_CASE(
    "with ranges a lone token is emitted at once, and a thousand together in lines of the upper limit") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database,
                          {"--batch-limit", "5..200", "--batch-timeout", "1h..2h", "--line-cost", "1ms"});
  REQUIRE(collector.connected());
  // A token within a millisecond of the one before would not be alone.
  std::vector<int> expected;
  for (int i = 0; i < 5; ++i) {
    insert_accounts(*connection, 1, "lone" + std::to_string(i) + "-");
    expected.push_back(1);
    REQUIRE(eventually([&] { return line_sizes(collector) == expected; }));
  }
  insert_accounts(*connection, 1000, "crowd");
  expected.insert(expected.end(), 5, 200);
  CHECK(eventually([&] { return line_sizes(collector) == expected; }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("with ranges and a dear line, tokens that come one by one soon fill lines") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database,
                          {"--batch-limit", "1..20", "--batch-timeout", "1h..2h", "--line-cost", "1h"});
  REQUIRE(collector.connected());
  constexpr int tokens = 400;
  for (int i = 0; i < tokens; ++i)
    insert_accounts(*connection, 1, "u" + std::to_string(i) + "-");
  // The rest is no full line.
  CHECK(eventually([&] {
    const auto sizes = line_sizes(collector);
    return std::accumulate(sizes.begin(), sizes.end(), 0) > tokens - 20;
  }));
  // How soon depends on what else the machine does: a collector that has to wait finds a full line.
  const auto sizes = line_sizes(collector);
  CHECK(std::ranges::count(sizes, 20) >= 15);
  CHECK(sizes.size() <= 40);
  CHECK(collector.stop() == 0);
}

}  // namespace mailroom::test::adaptive_collect_test
