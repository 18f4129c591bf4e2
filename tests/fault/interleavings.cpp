// Every order of the statements of a few sessions, with a crash at each point.

#include "fault/interleavings.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "base/wording.hpp"
#include "fault/order_oracle.hpp"
#include "fault/sabotage.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {
namespace {

/// What came of the orders of a scenario: all of them, or those up to the first that breaks a promise.
struct Exploration {
  int orders = 0;
  int with_crash = 0;
  int broken_off = 0;  ///< when they turned out to exchange steps that commute
  std::size_t states = 0;
  double seconds = 0;
  std::vector<std::string> problems{};
  std::vector<std::string> errors{};
  std::vector<std::string> trace{};
};

/// The servers's files need not outlive the machine; what a commit has written outlives the server all the
/// same.
Cluster make_cluster() {
  return Cluster(
      {.settings = {"fsync = off", "full_page_writes = off", "autovacuum = off", "deadlock_timeout = 50ms",
                    "wal_writer_delay = 10s", "recovery_init_sync_method = syncfs"}});
}

/// A database for each scenario and sabotage, copied from one that is migrated once.
class Databases {
 public:
  explicit Databases(const Cluster& cluster) : cluster_(cluster) {
    admin("CREATE DATABASE orders");
    db::Connection connection(cluster_.conninfo("orders"), "harness");
    migrate(connection);
  }

  std::string copy() {
    const auto name = fmt::format("orders_{}", ++count_);
    admin("CREATE DATABASE " + name + " TEMPLATE orders");
    db::Connection(cluster_.conninfo(name), "harness")
        .run(
            "UPDATE mailroom_home SET database = (SELECT oid FROM pg_database WHERE datname = current_database())");
    return name;
  }
  void drop(const std::string& name) { admin("DROP DATABASE " + name + " WITH (FORCE)"); }

 private:
  void admin(const std::string& sql) { db::Connection(cluster_.conninfo("postgres"), "harness").run(sql); }

  const Cluster& cluster_;
  int count_ = 0;
};

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (const auto& group : {queue_scenarios(), consumer_scenarios(), message_scenarios()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

/// The scenario, and the same with each program that may end ending after each of its steps.
std::vector<Scenario> with_crashes(const Scenario& scenario) {
  std::vector<Scenario> all{scenario};
  for (std::size_t i = 0; i < scenario.scripts.size(); ++i) {
    const auto& script = scenario.scripts[i];
    for (std::size_t taken = 1; script.may_die && taken <= script.steps.size(); ++taken) {
      const auto& last = script.steps[taken - 1];
      // Without a statement, and after the end of the last transaction, nothing ends with the program.
      if (last.name == "BEGIN" || (taken == script.steps.size() && last.act != Act::claim)) continue;
      all.push_back(scenario);
      auto& steps = all.back().scripts[i].steps;
      steps.resize(taken);
      ScriptStep death{.name = "dies", .act = Act::die};
      for (const auto& step : steps) {
        for (const auto& [thing, use] : step.uses)
          death.uses[thing] = Use::writes;
      }
      steps.push_back(death);
    }
  }
  return all;
}

std::vector<std::vector<Uses>> uses_of(const Scenario& scenario) {
  std::vector<std::vector<Uses>> uses;
  for (const auto& script : scenario.scripts) {
    uses.emplace_back();
    for (const auto& step : script.steps)
      uses.back().push_back(step.uses);
  }
  return uses;
}

/// False if an order of the scenario, with no other crash than its own, breaks a promise.
bool explore_variant(OrderPlayer& player, const Scenario& scenario, Exploration& sum) {
  StepOrders orders(uses_of(scenario));
  do {
    const auto history = player.play(scenario, orders);
    if (!history) {
      ++sum.broken_off;
      continue;
    }
    ++sum.orders;
    const auto is_crash = [](const StepEvent& event) {
      return event.step->act == Act::die || event.step->act == Act::kill_server ||
             event.step->act == Act::lose_session;
    };
    if (std::ranges::any_of(history->events, is_crash)) ++sum.with_crash;
    sum.errors = order_errors(*history);
    sum.problems = judge_order(scenario, *history, player.controller());
    if (sum.errors.empty() && sum.problems.empty()) continue;
    sum.trace = history->trace;
    sum.states += orders.states();
    return false;
  } while (orders.advance());
  sum.states += orders.states();
  return true;
}

Exploration explore(Cluster& cluster, Databases& databases, const Scenario& scenario,
                    const Sabotage* sabotage) {
  Exploration sum;
  const auto database = databases.copy();
  const auto start = std::chrono::steady_clock::now();
  try {
    OrderPlayer player(cluster, database);
    player.set_up(scenario);
    if (sabotage != nullptr) break_protocol(player.controller(), *sabotage);
    for (const auto& variant : with_crashes(scenario)) {
      if (!explore_variant(player, variant, sum)) break;
    }
  } catch (const std::exception& error) {
    sum.errors.emplace_back(error.what());
  }
  sum.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  databases.drop(database);
  return sum;
}

void print_found(const Exploration& found) {
  for (const auto& problem : found.problems)
    fmt::print("  not so: {}\n", problem);
  for (const auto& error : found.errors)
    fmt::print("  error: {}\n", error);
  for (const auto& line : found.trace)
    fmt::print("  {}\n", line);
  std::fflush(stdout);
}

int count_verdicts(int passed, int failed) {
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

void print_figures(const std::string& name, const Exploration& found, const std::string& verdict) {
  fmt::print("{:<40} {:>8} {:>10} {:>10} {:>8} {:>8.1f} {:>9.0f}  {}\n", name, with_thousands(found.orders),
             with_thousands(found.with_crash), with_thousands(found.broken_off),
             with_thousands(static_cast<std::int64_t>(found.states)), found.seconds,
             found.orders / found.seconds, verdict);
}

int play_all(const Interleavings& wanted, Cluster& cluster, Databases& databases) {
  fmt::print("{:<40} {:>8} {:>10} {:>10} {:>8} {:>8} {:>9}  {}\n", "scenario", "orders", "with crash",
             "broken off", "states", "seconds", "orders/s", "verdict");
  int passed = 0;
  int failed = 0;
  Exploration all;
  for (const auto& scenario : all_scenarios()) {
    if (!wanted.is_wanted(scenario.name) || (wanted.is_short && scenario.is_long)) continue;
    const auto found = explore(cluster, databases, scenario, nullptr);
    const bool is_well = found.problems.empty() && found.errors.empty();
    ++(is_well ? passed : failed);
    print_figures(scenario.name, found, is_well ? "ok" : "FAILED");
    print_found(found);
    all.orders += found.orders;
    all.with_crash += found.with_crash;
    all.broken_off += found.broken_off;
    all.states += found.states;
    all.seconds += found.seconds;
  }
  print_figures("all", all, "");
  return count_verdicts(passed, failed);
}

/// True if an order shows what is broken: a statement that fails shows nothing.
bool is_found(const Sabotage& sabotage, Cluster& cluster, Databases& databases) {
  const auto scenarios = all_scenarios();
  const auto scenario = std::ranges::find_if(
      scenarios, [&](const auto& each) { return std::ranges::count(each.finds, sabotage.name) > 0; });
  if (scenario == scenarios.end()) {
    fmt::print("{:<62} NOT FOUND: no scenario names it\n", sabotage.name);
    return false;
  }
  const auto found = explore(cluster, databases, *scenario, &sabotage);
  const bool is_seen = !found.problems.empty() && found.errors.empty();
  fmt::print("{:<62} {:<40} {:>6} {:>6} {:>8.1f}  {}\n", sabotage.name, scenario->name, found.orders,
             found.trace.size(), found.seconds, is_seen ? "found" : "NOT FOUND");
  print_found(found);
  return is_seen;
}

int check_oracle(const Interleavings& wanted, Cluster& cluster, Databases& databases) {
  fmt::print("{:<62} {:<40} {:>6} {:>6} {:>8}  {}\n", "broken on purpose", "scenario", "order", "steps",
             "seconds", "verdict");
  int passed = 0;
  int failed = 0;
  auto all = sabotages();
  all.insert(all.end(), order_sabotages().begin(), order_sabotages().end());
  for (const auto& sabotage : all) {
    if (!wanted.is_wanted(sabotage.name)) continue;
    ++(is_found(sabotage, cluster, databases) ? passed : failed);
  }
  return count_verdicts(passed, failed);
}

}  // namespace

int run_interleavings(const Interleavings& wanted) {
  if (wanted.list) {
    for (const auto& scenario : all_scenarios()) {
      if (!wanted.is_wanted(scenario.name)) continue;
      fmt::print("{}\n", scenario.name);
      for (const auto& sabotage : scenario.finds)
        fmt::print("  {}\n", sabotage);
    }
    return 0;
  }
  stop_clusters_on_signals();
  auto cluster = make_cluster();
  Databases databases(cluster);
  return wanted.self_check ? check_oracle(wanted, cluster, databases) : play_all(wanted, cluster, databases);
}

}  // namespace mailroom::test
