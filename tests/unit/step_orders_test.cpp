#include "fault/step_orders.hpp"

#include <algorithm>
#include <set>

#include "support/catch.hpp"

namespace mailroom::test::step_orders_test {
namespace {

using Script = std::vector<Uses>;

const Uses nothing{};
const Uses reads_a{{"a", Use::reads}};
const Uses adds_a{{"a", Use::adds}};
const Uses writes_a{{"a", Use::writes}};
const Uses writes_b{{"b", Use::writes}};

struct Explored {
  std::set<std::vector<std::size_t>> orders{};
  std::size_t broken_off = 0;
};

/// Plays all orders where no step waits.
Explored explore(const std::vector<Script>& scripts) {
  std::size_t steps = 0;
  for (const auto& script : scripts)
    steps += script.size();
  Explored explored;
  StepOrders orders(scripts);
  do {
    std::vector<std::size_t> order;
    while (const auto session = orders.next(std::vector<Standing>(scripts.size())))
      order.push_back(*session);
    if (order.size() == steps) {
      REQUIRE(explored.orders.insert(order).second);
    } else {
      ++explored.broken_off;
    }
  } while (orders.advance());
  return explored;
}

/// The orders that remain if of those that differ by exchanges of steps that commute only one is kept: of
/// each the pairs of steps that do not commute, as they come.
std::size_t classes(const std::vector<Script>& scripts) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < scripts.size(); ++i)
    order.insert(order.end(), scripts[i].size(), i);
  std::set<std::set<std::vector<std::size_t>>> all;
  do {
    std::set<std::vector<std::size_t>> pairs;
    std::vector<std::size_t> taken(scripts.size());
    std::vector<std::pair<std::size_t, std::size_t>> done;
    for (const auto session : order) {
      const auto step = taken[session]++;
      for (const auto& [other, its] : done) {
        if (other != session && !commute(scripts[other][its], scripts[session][step]))
          pairs.insert({other, its, session, step});
      }
      done.emplace_back(session, step);
    }
    all.insert(pairs);
  } while (std::ranges::next_permutation(order).found);
  return all.size();
}

}  // namespace

TEST_CASE("steps commute unless one writes what the other uses, or one reads what the other adds to") {
  const std::vector<std::pair<std::vector<Uses>, bool>> table{
      {{nothing, writes_a}, true},  {{reads_a, reads_a}, true},   {{adds_a, adds_a}, true},
      {{writes_a, writes_b}, true}, {{reads_a, adds_a}, false},   {{reads_a, writes_a}, false},
      {{adds_a, writes_a}, false},  {{writes_a, writes_a}, false}};
  for (const auto& [steps, expected] : table) {
    CHECK(commute(steps[0], steps[1]) == expected);
    CHECK(commute(steps[1], steps[0]) == expected);
  }
}

TEST_CASE("as many orders are explored as differ by more than exchanges of steps that commute") {
  struct Row {
    std::vector<Script> scripts;
    std::size_t orders;
  };
  const std::vector<Row> table{
      {{{writes_a}}, 1},
      {{{nothing, nothing}, {nothing, nothing, nothing}}, 1},
      {{{writes_a}, {writes_b}}, 1},
      {{{reads_a, reads_a}, {reads_a}}, 1},
      {{{writes_a}, {writes_a}}, 2},
      {{{writes_a, writes_a}, {writes_a, writes_a}}, 6},
      {{{writes_a}, {writes_a}, {writes_a}}, 6},
      {{{writes_a, writes_b}, {writes_b, writes_a}}, 3},
      {{{nothing, writes_a, nothing}, {nothing, writes_a}}, 2},
      {{{adds_a}, {adds_a}, {reads_a}}, 4},
      {{{writes_b, adds_a}, {writes_b, adds_a}, {reads_a}}, 8},
  };
  for (const auto& row : table) {
    const auto explored = explore(row.scripts);
    CHECK(explored.orders.size() == row.orders);
    CHECK(classes(row.scripts) == row.orders);
  }
}

TEST_CASE("a session that waits is left out until it can go on") {
  // The first step of one session waits until the other has taken its last.
  StepOrders orders({{writes_a, writes_a}, {writes_a, writes_a}});
  std::set<std::vector<std::size_t>> all;
  do {
    std::vector<std::size_t> order;
    std::vector<std::size_t> taken(2);
    for (;;) {
      const bool waits = taken[0] == 1 && taken[1] < 2;
      const auto session = orders.next({{.can_go = !waits, .waits = waits}, {}});
      if (!session) break;
      order.push_back(*session);
      ++taken[*session];
    }
    if (order.size() == 4) all.insert(order);
  } while (orders.advance());
  CHECK(all == std::set<std::vector<std::size_t>>{{0, 1, 1, 0}, {1, 0, 1, 0}, {1, 1, 0, 0}});
}

}  // namespace mailroom::test::step_orders_test
