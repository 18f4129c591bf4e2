#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "simulation/emission_watch.hpp"
#include "simulation/schedule.hpp"
#include "simulation/simulated_rows.hpp"
#include "support/catch.hpp"

namespace mailroom::test::simulation_test {
namespace {

using std::chrono::microseconds;

constexpr TimePoint origin{};

std::vector<AccountPlan> plans_of(std::uint64_t seed, const Shares& shares, int count) {
  AccountPlanner plan(seed, shares);
  std::vector<AccountPlan> plans;
  for (int i = 0; i < count; ++i)
    plans.push_back(plan.next());
  return plans;
}

bool same(const AccountPlan& a, const AccountPlan& b) {
  return a.activates == b.activates && a.recovers == b.recovers && a.suspends == b.suspends;
}

template <typename Chosen>
double percent_of(const std::vector<AccountPlan>& plans, Chosen chosen) {
  return 100.0 * static_cast<double>(std::count_if(plans.begin(), plans.end(), chosen)) /
         static_cast<double>(plans.size());
}

std::int64_t exact_percentile(std::vector<std::int64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(static_cast<double>(values.size()) * percent / 100.0));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

std::vector<std::int64_t> ids_of(const std::vector<SimulatedToken>& tokens) {
  std::vector<std::int64_t> ids;
  for (const auto& token : tokens)
    ids.push_back(token.id);
  return ids;
}

TimePoint at(int seconds) {
  return origin + std::chrono::seconds(seconds);
}

/// A schedule of three accounts with ids 1 to 3, all created.
SimulationSchedule created_schedule(const SimulationRequest& request) {
  SimulationSchedule schedule(request, origin);
  CHECK(schedule.add_accounts(*schedule.next_deal(), {1, 2, 3}) == std::vector<std::int64_t>{1, 2, 3});
  return schedule;
}

}  // namespace

TEST_CASE("simulated names begin with the seed, and no seed's prefix begins with another's") {
  CHECK(simulated_prefix(0) == "sim-0-");
  CHECK(simulated_prefix(42) == "sim-42-");
  CHECK(simulated_prefix(18446744073709551615U) == "sim-18446744073709551615-");
  CHECK(simulated_prefix(42).substr(0, simulated_prefix(4).size()) != simulated_prefix(4));
  CHECK(std::string(simulated_email_end).find(".example") != std::string::npos);
}

TEST_CASE("a seed repeats its plans, and another seed has others") {
  const Shares shares{.activate = 60, .recover = 30, .suspend = 10};
  const auto first = plans_of(7, shares, 1000);
  const auto again = plans_of(7, shares, 1000);
  const auto other = plans_of(8, shares, 1000);
  CHECK(std::equal(first.begin(), first.end(), again.begin(), same));
  CHECK_FALSE(std::equal(first.begin(), first.end(), other.begin(), same));
}

TEST_CASE("the draws of a seed are the same on every platform") {
  // The standard specifies the 10,000th value of this generator; the draws are its upper 53 bits.
  std::mt19937_64 reference;
  reference.discard(9999);
  REQUIRE(reference() == 9981545732273789042U);
  std::string activating;
  for (const auto& status : plans_of(1, {.activate = 50, .recover = 0, .suspend = 0}, 24)) {
    activating += status.activates ? '1' : '0';
  }
  CHECK(activating == "111001101101010001111100");
}

TEST_CASE("0 percent selects no account and 100 percent every account") {
  for (const auto& status : plans_of(3, {}, 2000))
    CHECK((!status.activates && !status.recovers && !status.suspends));
  for (const auto& status : plans_of(3, {.activate = 100, .recover = 100, .suspend = 100}, 2000)) {
    CHECK((status.activates && status.recovers && status.suspends));
  }
}

TEST_CASE("shares are met within statistical error, and only activated accounts recover") {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 20; ++round) {
    const Shares shares{.activate = static_cast<double>(random() % 101),
                        .recover = static_cast<double>(random() % 101),
                        .suspend = static_cast<double>(random() % 1001) / 10};
    const auto plans = plans_of(random(), shares, 40'000);
    CAPTURE(shares.activate, shares.recover, shares.suspend);
    CHECK(percent_of(plans, [](const AccountPlan& f) { return f.activates; }) ==
          Approx(shares.activate).margin(1.5));
    CHECK(percent_of(plans, [](const AccountPlan& f) { return f.recovers; }) ==
          Approx(shares.activate * shares.recover / 100).margin(1.5));
    CHECK(percent_of(plans, [](const AccountPlan& f) { return f.suspends; }) ==
          Approx(shares.suspend).margin(1.5));
    CHECK(std::none_of(plans.begin(), plans.end(),
                       [](const AccountPlan& f) { return f.recovers && !f.activates; }));
  }
}

TEST_CASE("a higher share keeps the accounts of a lower one, and does not affect other shares") {
  const auto few = plans_of(11, {.activate = 20, .recover = 50, .suspend = 5}, 5000);
  const auto many = plans_of(11, {.activate = 70, .recover = 50, .suspend = 5}, 5000);
  for (std::size_t i = 0; i < few.size(); ++i) {
    CHECK((!few[i].activates || many[i].activates));
    CHECK(few[i].suspends == many[i].suspends);
  }
}

TEST_CASE("accounts are evenly spaced at a rate") {
  struct Row {
    std::int64_t n;
    double rate;
    std::int64_t microseconds;
  };
  for (const auto& row : {Row{1, 10, 0}, Row{2, 10, 100'000}, Row{11, 10, 1'000'000}, Row{3, 0.5, 4'000'000},
                          Row{1'000'001, 1'000'000, 1'000'000}}) {
    CAPTURE(row.n, row.rate);
    const auto offset = std::chrono::round<microseconds>(due_at(origin, row.n, row.rate) - origin);
    CHECK(offset.count() == row.microseconds);
  }
  CHECK(due_at(origin, 100'000'000, 0.001) > due_at(origin, 1000, 0.001));
}

TEST_CASE("every account is dealt once, in blocks or one by one") {
  const Shares shares{.activate = 50, .recover = 50, .suspend = 50};
  const auto expected = plans_of(5, shares, 2500);
  for (const auto rate : {std::optional<double>(), std::optional<double>(100)}) {
    const SimulationRequest request{.accounts = 2500, .seed = 5, .rate = rate, .shares = shares, .delay = {}};
    SimulationSchedule schedule(request, origin);
    std::vector<AccountPlan> plans;
    std::set<std::size_t> sizes;
    while (const auto deal = schedule.next_deal()) {
      CHECK(deal->first == static_cast<std::int64_t>(plans.size()) + 1);
      CHECK(deal->due == (rate ? due_at(origin, deal->first, *rate) : origin));
      sizes.insert(deal->plans.size());
      plans.insert(plans.end(), deal->plans.begin(), deal->plans.end());
    }
    CHECK(sizes == (rate ? std::set<std::size_t>{1} : std::set<std::size_t>{500, 1000}));
    REQUIRE(plans.size() == expected.size());
    CHECK(std::equal(plans.begin(), plans.end(), expected.begin(), same));
    CHECK_FALSE(schedule.next_deal());
  }
}

TEST_CASE("a token is ready once it was emitted, even before it is known, and expires otherwise") {
  const SimulationRequest request{.accounts = 3, .rate = {}, .shares = {.activate = 100}, .delay = {}};
  auto schedule = created_schedule(request);
  CHECK_FALSE(schedule.add_emissions({{11, 12}}));
  schedule.add_tokens({{11, 1, 60}, {12, 2, 60}, {13, 3, 60}}, false, 0, origin);
  CHECK(ids_of(schedule.take_ready()) == std::vector<std::int64_t>{11});
  CHECK(schedule.add_emissions({{12, 13}}));
  CHECK(schedule.waiting() == 1);
  CHECK_FALSE(schedule.release_due(at(59)));
  CHECK(schedule.release_due(at(60)));
  CHECK(schedule.total().expired == 1);
  CHECK_FALSE(schedule.is_over());
  CHECK(ids_of(schedule.take_ready()) == std::vector<std::int64_t>{12});
  CHECK(schedule.is_over());
}

TEST_CASE("with a delay a token is ready when it has passed") {
  const SimulationRequest request{
      .accounts = 3, .rate = {}, .shares = {.activate = 100}, .delay = Milliseconds{5000}};
  auto schedule = created_schedule(request);
  schedule.add_tokens({{11, 1, 60}, {12, 2, 60}}, false, 0, origin);
  schedule.add_tokens({{13, 3, 60}}, false, 0, at(1));
  CHECK_FALSE(schedule.release_due(at(4)));
  CHECK(schedule.release_due(at(5)));
  CHECK(ids_of(schedule.take_ready()) == std::vector<std::int64_t>{11, 12});
  CHECK(schedule.waiting() == 1);
}

TEST_CASE("an account recovers after its activation, and is suspended last") {
  const SimulationRequest request{.accounts = 3,
                                  .rate = {},
                                  .shares = {.activate = 100, .recover = 100, .suspend = 100},
                                  .delay = Milliseconds{0}};
  auto schedule = created_schedule(request);
  schedule.add_tokens({{11, 1, 60}, {12, 2, 60}}, false, 0, origin);
  CHECK(schedule.release_due(origin));
  CHECK(schedule.finish(schedule.take_ready(), {12}) == std::vector<std::int64_t>{2});
  CHECK(schedule.take_to_suspend() == std::vector<std::int64_t>{1});
  schedule.add_tokens({{13, 2, 60}}, true, 0, origin);
  CHECK(schedule.release_due(origin));
  CHECK(schedule.finish(schedule.take_ready(), {13}).empty());
  CHECK(schedule.take_to_suspend() == std::vector<std::int64_t>{2});
  const auto& total = schedule.total();
  CHECK(total.accounts == 3);
  CHECK(total.tokens == 4);
  CHECK(total.activated == 1);
  CHECK(total.recovered == 1);
  CHECK(total.expired == 1);
}

TEST_CASE("small latencies are counted exactly") {
  LatencyHistogram histogram;
  CHECK(histogram.percentile(50) == microseconds(0));
  CHECK(histogram.max() == microseconds(0));
  for (int value = 1; value <= 100; ++value)
    histogram.add(microseconds(value));
  CHECK(histogram.count() == 100);
  CHECK(histogram.percentile(0) == microseconds(1));
  CHECK(histogram.percentile(50) == microseconds(50));
  CHECK(histogram.percentile(99) == microseconds(99));
  CHECK(histogram.percentile(100) == microseconds(100));
}

TEST_CASE("percentiles are at most 1/128 above the exact ones") {
  std::mt19937_64 random(4711);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::int64_t> values;
    LatencyHistogram histogram;
    const auto count = 1 + random() % 3000;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::int64_t>(random() >> (24 + random() % 40));
      values.push_back(value);
      histogram.add(microseconds(value));
    }
    for (const double percent : {0.0, 1.0, 50.0, 95.0, 99.0, 99.9, 100.0}) {
      const auto exact = exact_percentile(values, percent);
      CAPTURE(round, percent, exact);
      CHECK(histogram.percentile(percent).count() >= exact);
      CHECK(histogram.percentile(percent).count() <= exact + exact / 128);
    }
    CHECK(histogram.max().count() == *std::max_element(values.begin(), values.end()));
    CHECK(histogram.count() == static_cast<std::int64_t>(count));
  }
}

}  // namespace mailroom::test::simulation_test
