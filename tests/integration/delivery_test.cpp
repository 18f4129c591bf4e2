// The oracle of the queue protocol under concurrent writers: every committed token is emitted, every emitted
// token was committed, none is emitted twice, and no batch stays open.

#include <set>

#include "support/catch.hpp"
#include "support/test_collector.hpp"
#include "support/write_load.hpp"

namespace mailroom::test::delivery_test {
namespace {

struct Tally {
  std::size_t committed = 0;
  std::size_t lost = 0;
  std::size_t strange = 0;
  int repeated = 0;
};

Tally tally(const std::set<std::int64_t>& committed, const std::vector<std::string>& outputs) {
  Tally result{.committed = committed.size()};
  std::map<std::int64_t, int> emitted;
  for (const auto& output : outputs) {
    for (const auto& [id, times] : emitted_ids(output))
      emitted[id] += times;
  }
  for (const auto id : committed)
    result.lost += emitted.count(id) == 0 ? 1 : 0;
  for (const auto& [id, times] : emitted) {
    result.strange += committed.count(id) == 0 ? 1 : 0;
    result.repeated += times - 1;
  }
  return result;
}

}  // namespace

TEST_CASE("two collectors with twelve writers lose nothing and repeat nothing") {
  const std::uint64_t seed = GENERATE(1U, 2U);
  const int limit = seed == 1 ? 10 : 100;
  TestDatabase database;
  const auto connection = database.connect();
  const std::vector<std::string> options{"--format",        "jsonl", "--batch-limit", std::to_string(limit),
                                         "--batch-timeout", "100ms"};
  TestCollector first(database, options);
  TestCollector second(database, options);
  REQUIRE(first.connected());
  REQUIRE(second.connected());

  WriteLoad load(database, 12, seed * 1000);
  await_tokens(*connection, 1500);
  load.stop();

  const auto committed = committed_tokens(*connection);
  const auto all_out = [&] {
    return emitted_ids(first.output()).size() + emitted_ids(second.output()).size() >= committed.size();
  };
  const bool complete = eventually(all_out);
  const bool drained = eventually([&] { return unfinished_work(*connection) == 0; });
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);

  const auto result = tally(committed, {first.output(), second.output()});
  CAPTURE(seed, limit, result.committed, result.lost, result.strange, result.repeated, first.log(),
          second.log());
  CHECK(result.committed >= 1500);
  CHECK(result.lost == 0);
  CHECK(result.strange == 0);
  CHECK(result.repeated == 0);
  CHECK(complete);
  CHECK(drained);
  CHECK_FALSE(first.output().empty());
  CHECK_FALSE(second.output().empty());
}

}  // namespace mailroom::test::delivery_test
