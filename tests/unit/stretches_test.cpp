// Overlapping ranges of a record, cut into disjoint stretches.

#include "reconcile/stretches.hpp"

#include <fmt/format.h>
#include <map>
#include <random>

#include "support/catch.hpp"

namespace mailroom::test::stretches_test {
namespace {

reconcile::RecordedRange batch(std::int64_t first, std::int64_t end, std::int64_t id,
                               std::int64_t second = 0) {
  return {.first = first,
          .end = end,
          .kind = reconcile::RangeKind::held,
          .source = id,
          .leased_at = second * 1'000'000,
          .state = reconcile::BatchState::emitted};
}

reconcile::RecordedRange window(std::int64_t first, std::int64_t end, std::int64_t id) {
  auto range = batch(first, end, id);
  range.kind = reconcile::RangeKind::window;
  return range;
}

/// `1-3:b7 4:b7,w7`: the stretches with the batches and windows that cover them.
std::string cut(std::vector<reconcile::RecordedRange> ranges,
                std::vector<selection::IdRange> wanted = {{-1000, 1000}}, bool keeps_batches = true) {
  std::string text;
  reconcile::StretchCutter cutter(std::move(wanted), keeps_batches, [&](const reconcile::Stretch& stretch) {
    text += (text.empty() ? "" : " ") + selection::id_range_text({stretch.first, stretch.end});
    for (const auto& range : stretch.situation.ranges)
      text += fmt::format("{}{}{}", &range == stretch.situation.ranges.data() ? ":" : ",",
                          range.is_batch() ? "b" : "w", range.source);
  });
  for (auto& range : ranges)
    cutter.add(std::move(range));
  cutter.finish();
  return text;
}

}  // namespace

TEST_CASE("ranges are cut where another begins or ends") {
  CHECK(cut({}).empty());
  CHECK(cut({batch(1, 4, 7)}) == "1-3:b7");
  CHECK(cut({batch(1, 4, 7), batch(4, 6, 8)}) == "1-3:b7 4-5:b8");
  CHECK(cut({batch(1, 6, 7), batch(3, 4, 8)}) == "1-2:b7 3:b7,b8 4-5:b7");
  CHECK(cut({window(1, 6, 7), batch(1, 3, 7), batch(5, 6, 7)}) == "1-2:b7,w7 3-4:w7 5:b7,w7");
  CHECK(cut({batch(1, 3, 7), batch(9, 10, 8)}) == "1-2:b7 9:b8");
}

TEST_CASE("only wanted ids are in a stretch") {
  CHECK(cut({batch(1, 20, 7)}, {{3, 5}, {8, 9}, {15, 30}}) == "3-4:b7 8:b7 15-19:b7");
  CHECK(cut({batch(1, 20, 7)}, {}).empty());
}

TEST_CASE("a mask names the ids of a batch") {
  auto masked = batch(1, 7, 7);
  masked.mask = "101100";
  CHECK(cut({window(1, 7, 7), masked, batch(5, 8, 8)}) == "1:b7,w7 2:w7 3-4:b7,w7 5-6:b8,w7 7:b8");
}

TEST_CASE("neighbours are one stretch if they were claimed within a second and nothing is peculiar") {
  CHECK(cut({batch(1, 4, 7, 5), batch(4, 6, 8, 5), batch(6, 8, 9, 6)}, {{0, 99}}, false) == "1-5:b7 6-7:b9");
  auto repeated = batch(4, 6, 8, 5);
  repeated.attempts = 2;
  CHECK(cut({batch(1, 4, 7, 5), repeated, batch(6, 8, 9, 5)}, {{0, 99}}, false) == "1-3:b7 4-5:b8 6-7:b9");
  CHECK(cut({batch(1, 4, 7, 5), batch(5, 6, 8, 5)}, {{0, 99}}, false) == "1-3:b7 5:b8");
}

TEST_CASE("each id is in one stretch, with the ranges that cover it") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    std::vector<reconcile::RecordedRange> ranges;
    std::map<std::int64_t, int> expected;
    for (int i = 0, number = draw(0, 30); i < number; ++i) {
      const int first = draw(0, 80);
      ranges.push_back(batch(first, first + draw(1, 20), i, draw(0, 3)));
      if (draw(0, 3) == 0) {
        for (auto id = ranges.back().first; id < ranges.back().end; ++id)
          ranges.back().mask += draw(0, 1) == 0 ? '0' : '1';
      }
      for (auto id = ranges.back().first; id < ranges.back().end; ++id) {
        const auto& mask = ranges.back().mask;
        if (mask.empty() || mask[static_cast<std::size_t>(id - first)] == '1') ++expected[id];
      }
    }
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::map<std::int64_t, int> found;
    reconcile::StretchCutter cutter({{-10, 200}}, draw(0, 1) == 0, [&](const reconcile::Stretch& stretch) {
      for (auto id = stretch.first; id < stretch.end; ++id) {
        CHECK(found.count(id) == 0);
        found[id] = static_cast<int>(stretch.situation.ranges.size());
      }
    });
    for (auto& range : ranges)
      cutter.add(range);
    cutter.finish();
    INFO("seed " << seed);
    CHECK(found == expected);
  }
}

}  // namespace mailroom::test::stretches_test
