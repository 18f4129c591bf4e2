// A collector that adapts limit and timeout, against every fixed pair on the same arrivals
// (docs/batching.md).

#include <algorithm>
#include <random>

#include "adaptive/played_batches.hpp"
#include "support/catch.hpp"

namespace mailroom::test::adaptive_test {

using namespace std::chrono_literals;

namespace {

constexpr double tolerance = 1.1;
constexpr double cost_tolerance = 1.15;
constexpr Milliseconds line_costs[] = {100ms, 300ms, 1s};

std::vector<PlayedBatches> play_grid(const Arrivals& arrivals) {
  std::vector<PlayedBatches> played;
  for (const auto& options : fixed_grid())
    played.push_back(play_batches(arrivals, options));
  return played;
}

/// How much fewer lines and how much less delay, whichever is the smaller factor, some fixed pair has. On the
/// Pareto front of lines and mean delay it is at most 1.
double distance_from_front(const PlayedBatches& played, const std::vector<PlayedBatches>& grid) {
  double distance = 0;
  for (const auto& other : grid) {
    const auto lines = static_cast<double>(played.lines) / static_cast<double>(other.lines);
    distance = std::max(distance, std::min(lines, played.delay / other.delay));
  }
  return distance;
}

/// The cost, relative to the fixed pair that is the cheapest on these very arrivals.
double relative_cost(const PlayedBatches& played, const std::vector<PlayedBatches>& grid,
                     Milliseconds line_cost) {
  auto least = grid.front().cost(line_cost);
  for (const auto& other : grid)
    least = std::min(least, other.cost(line_cost));
  return played.cost(line_cost) / least;
}

}  // namespace

TEST_CASE("adaptive batching is within a tenth of the Pareto front, and as cheap as the best fixed pair",
          "[long]") {
  for (const auto& kind : arrival_kinds()) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto arrivals = kind.arrive(seed);
      const auto grid = play_grid(arrivals);
      for (const auto line_cost : line_costs) {
        CAPTURE(kind.name, seed, line_cost.count());
        const auto played = play_batches(arrivals, adaptive_batching(line_cost));
        CHECK(played.tokens == arrivals.size());
        CHECK(distance_from_front(played, grid) <= tolerance);
        CHECK(relative_cost(played, grid, line_cost) <= cost_tolerance);
      }
    }
  }
}

TEST_CASE("no fixed pair is that cheap for every kind of arrivals and every cost of a line") {
  std::vector<int> cheap(fixed_grid().size());
  for (const auto& kind : arrival_kinds()) {
    const auto grid = play_grid(kind.arrive(1));
    for (const auto line_cost : line_costs) {
      for (std::size_t i = 0; i < grid.size(); ++i)
        cheap[i] += relative_cost(grid[i], grid, line_cost) <= cost_tolerance ? 1 : 0;
    }
  }
  // Of twelve: four kinds and three costs.
  CHECK(*std::ranges::max_element(cheap) <= 8);
  CHECK(*std::ranges::max_element(cheap) >= 1);
}

TEST_CASE("a dearer line makes fewer lines, and more delay") {
  for (const auto& kind : arrival_kinds()) {
    const auto arrivals = kind.arrive(1);
    auto before = play_batches(arrivals, adaptive_batching(1ms));
    for (const auto line_cost : {100ms, 1000ms, 10'000ms, 100'000ms}) {
      CAPTURE(kind.name, line_cost.count());
      const auto played = play_batches(arrivals, adaptive_batching(line_cost));
      CHECK(played.lines < before.lines);
      CHECK(played.delay > before.delay);
      before = played;
    }
  }
}

namespace {

/// Any pattern: tokens alone, together, in streams and after pauses.
Arrivals random_arrivals(std::mt19937_64& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Arrivals arrivals;
  std::chrono::microseconds time{};
  for (auto parts = 1 + below(8); parts > 0; --parts) {
    time += std::chrono::microseconds(below(20'000'000));
    const auto gap = std::int64_t{1} << below(22);
    for (auto tokens = 1 + below(300); tokens > 0; --tokens) {
      time += std::chrono::microseconds(below(4) == 0 ? 0 : below(gap));
      arrivals.push_back(time);
    }
  }
  return arrivals;
}

consumer::Batcher::Options random_ranges(std::mt19937_64& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  const int min_limit = 1 + below(below(2) == 0 ? 1 : 50);
  const Milliseconds min_timeout(below(2) == 0 ? 0 : below(200));
  auto options = fixed_batching(min_limit + below(200), min_timeout + Milliseconds(below(3000)));
  options.adaptive = consumer::Batcher::Adaptive{
      .min_limit = min_limit, .min_timeout = min_timeout, .line_cost = Milliseconds(1 << below(16))};
  return options;
}

}  // namespace

TEST_CASE("whatever the arrivals and ranges, each token leaves in time, in a line within the limit") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto arrivals = random_arrivals(random);
    const auto options = random_ranges(random);
    const auto played = play_batches(arrivals, options);
    REQUIRE(played.tokens == arrivals.size());
    REQUIRE(played.longest_line <= static_cast<std::size_t>(options.line_limit));
    // Besides the timeout, each line takes two claims of a millisecond, and all of them may have to wait.
    const auto busy = 2ms * (played.tokens / static_cast<std::size_t>(options.adaptive->min_limit) + 2);
    REQUIRE(played.longest_delay <= options.batch_timeout + busy);
    // A claim for each notification, line and acknowledgement, and each poll interval.
    const auto intervals = static_cast<std::size_t>(arrivals.back() / 900ms);
    REQUIRE(played.claims <= played.tokens + 3 * played.lines + intervals + 5);
  }
}

}  // namespace mailroom::test::adaptive_test
