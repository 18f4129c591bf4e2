#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <thread>

#include "simulation/account_dealer.hpp"
#include "simulation/latency.hpp"
#include "simulation/simulated_account.hpp"
#include "simulation/waiting_tokens.hpp"
#include "support/catch.hpp"

namespace mailroom {
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

SimulatedToken token_of(std::int64_t id) {
  return {.id = id, .account = id, .plan = {}, .is_recovery = false};
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

TEST_CASE("the dealer assigns every account once, in blocks or one by one") {
  const AccountPlanner plan(5, {.activate = 50, .recover = 50, .suspend = 50});
  const auto expected = plans_of(5, {.activate = 50, .recover = 50, .suspend = 50}, 2500);
  for (const auto rate : {std::optional<double>(), std::optional<double>(100)}) {
    AccountDealer dealer(2500, rate, plan, origin);
    std::vector<AccountPlan> plans;
    std::set<std::size_t> sizes;
    while (const auto deal = dealer.take()) {
      CHECK(deal->first == static_cast<std::int64_t>(plans.size()) + 1);
      CHECK(deal->due == (rate ? due_at(origin, deal->first, *rate) : origin));
      sizes.insert(deal->plans.size());
      plans.insert(plans.end(), deal->plans.begin(), deal->plans.end());
    }
    CHECK(sizes == (rate ? std::set<std::size_t>{1} : std::set<std::size_t>{500, 1000}));
    REQUIRE(plans.size() == expected.size());
    CHECK(std::equal(plans.begin(), plans.end(), expected.begin(), same));
    CHECK_FALSE(dealer.take());
  }
}

TEST_CASE("several threads share a dealer without gaps or duplicates") {
  AccountDealer dealer(20'000, 1e6, AccountPlanner(1, {}), origin);
  std::vector<std::vector<std::int64_t>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken) {
    threads.emplace_back([&dealer, &mine] {
      while (const auto deal = dealer.take())
        mine.push_back(deal->first);
    });
  }
  for (auto& thread : threads)
    thread.join();
  std::set<std::int64_t> all;
  std::size_t count = 0;
  for (const auto& mine : taken) {
    count += mine.size();
    all.insert(mine.begin(), mine.end());
  }
  CHECK(count == 20'000);
  CHECK(all.size() == 20'000);
}

TEST_CASE("waiting tokens are taken by id or by time, once") {
  WaitingTokens waiting;
  CHECK_FALSE(waiting.earliest());
  const auto at = [](int seconds) { return origin + std::chrono::seconds(seconds); };
  for (const auto& [id, second] : {std::pair{10, 3}, {11, 1}, {12, 2}, {20, 9}})
    waiting.add(token_of(id), at(second));
  CHECK(waiting.earliest() == at(1));
  CHECK(ids_of(waiting.take({11, 12})) == std::vector<std::int64_t>{11});
  CHECK(waiting.take({11, 12}).empty());
  CHECK(waiting.earliest() == at(2));
  CHECK(waiting.take_until(at(1)).empty());
  CHECK(ids_of(waiting.take_until(at(3))) == std::vector<std::int64_t>{12, 10});
  CHECK(waiting.size() == 1);
  CHECK(ids_of(waiting.take({1, 100})) == std::vector<std::int64_t>{20});
  CHECK_FALSE(waiting.earliest());
}

TEST_CASE("waiting tokens agree with a plain list for random operations") {
  std::mt19937_64 random(99);
  WaitingTokens waiting;
  std::map<std::int64_t, TimePoint> model;
  for (int step = 0; step < 3000; ++step) {
    const auto id = static_cast<std::int64_t>(random() % 500);
    const auto moment = origin + std::chrono::seconds(random() % 100);
    std::set<std::int64_t> expected;
    std::vector<SimulatedToken> taken;
    switch (random() % 3) {
      case 0:
        waiting.add(token_of(id), moment);
        model.emplace(id, moment);
        break;
      case 1:
        taken = waiting.take({id, id + 5});
        for (const auto& [known, until] : model) {
          if (known >= id && known < id + 5) expected.insert(known);
        }
        break;
      default:
        taken = waiting.take_until(moment - std::chrono::seconds(80));
        for (const auto& [known, until] : model) {
          if (until <= moment - std::chrono::seconds(80)) expected.insert(known);
        }
    }
    for (const auto known : expected)
      model.erase(known);
    const auto ids = ids_of(taken);
    REQUIRE(std::set<std::int64_t>(ids.begin(), ids.end()) == expected);
    REQUIRE(waiting.size() == model.size());
  }
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

TEST_CASE("latencies outside the range are counted at its ends") {
  LatencyHistogram histogram;
  histogram.add(microseconds(-5));
  CHECK(histogram.max() == microseconds(0));
  histogram.add(microseconds(std::int64_t{1} << 50));
  CHECK(histogram.percentile(100) == microseconds(std::int64_t{1} << 40));
}

TEST_CASE("percentiles are at most 1/128 above the exact ones, and merging changes nothing") {
  std::mt19937_64 random(4711);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::int64_t> values;
    LatencyHistogram whole;
    std::array<LatencyHistogram, 3> parts;
    const auto count = 1 + random() % 3000;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::int64_t>(random() >> (24 + random() % 40));
      values.push_back(value);
      whole.add(microseconds(value));
      parts[i % 3].add(microseconds(value));
    }
    LatencyHistogram merged;
    for (const auto& part : parts)
      merged.merge(part);
    for (const double percent : {0.0, 1.0, 50.0, 95.0, 99.0, 99.9, 100.0}) {
      const auto exact = exact_percentile(values, percent);
      CAPTURE(round, percent, exact);
      CHECK(whole.percentile(percent).count() >= exact);
      CHECK(whole.percentile(percent).count() <= exact + exact / 128);
      CHECK(merged.percentile(percent) == whole.percentile(percent));
    }
    CHECK(merged.max().count() == *std::max_element(values.begin(), values.end()));
    CHECK(merged.count() == static_cast<std::int64_t>(count));
  }
}

}  // namespace mailroom
