// fault_harness: runs faults against a temporary PostgreSQL, and prints what was lost or repeated.

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <map>
#include <set>

#include "base/wording.hpp"
#include "fault/fault.hpp"
#include "fault/interleavings.hpp"
#include "fault/step_collector.hpp"

namespace mailroom::test {
namespace {

struct HarnessOptions {
  bool list = false;
  bool shortened = false;
  bool self_check = false;
  bool interleavings = false;
  std::vector<std::string> only;
  int rounds = 0;
  std::uint64_t seed = 1;
  std::optional<Notifying> notifying;  ///< otherwise both
  int shard = 1;
  int shards = 1;
};

const std::vector<std::pair<std::string, Notifying>> notifying_names{
    {"when_listening", Notifying::when_listening}, {"always", Notifying::always}};

/// Sets collect.notify for the collectors, which read it from the environment.
void notify(Notifying when) {
  for (const auto& [name, notifying] : notifying_names) {
    if (notifying == when) setenv("MAILROOM_NOTIFY", name.c_str(), 1);
  }
}

std::vector<Fault> all_faults() {
  std::vector<Fault> all;
  for (const auto& group :
       {process_faults(), step_faults(),   session_faults(),     server_faults(),      replica_faults(),
        network_faults(), output_faults(), backlog_faults(),     transaction_faults(), waking_faults(),
        data_faults(),    clock_faults(),  queue_faults(),       rate_faults(),        send_faults(),
        message_faults(), relay_faults(),  relay_login_faults(), handover_faults(),    bounce_faults(),
        topic_faults()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

bool is_wanted(const std::string& name, const HarnessOptions& options) {
  if (options.only.empty()) return true;
  return std::any_of(options.only.begin(), options.only.end(),
                     [&](const auto& part) { return name.find(part) != std::string::npos; });
}

/// True if a fault of this name is not for a short run, unless it is asked for.
bool is_left_out(const Fault& fault, const HarnessOptions& options) {
  return options.shortened && options.only.empty() && fault.short_rounds == 0;
}

/// Those that were asked for, or of several shards each N-th of them.
template <typename Named>
std::vector<Named> of_shard(std::vector<Named> all, const HarnessOptions& options) {
  int count = 0;
  std::erase_if(all, [&](const auto& each) {
    return !is_wanted(each.name, options) || count++ % options.shards != options.shard - 1;
  });
  return all;
}

std::vector<Fault> chosen_faults(const HarnessOptions& options) {
  auto faults = all_faults();
  std::erase_if(faults, [&](const auto& fault) { return is_left_out(fault, options); });
  return of_shard(std::move(faults), options);
}

enum class Verdict { passed, failed, not_run };

void print_row(const std::string& name, const Outcome& outcome) {
  const auto& tally = outcome.tally;
  const auto gap =
      outcome.longest_gap ? with_thousands(outcome.longest_gap->count()) + " ms" : std::string("-");
  fmt::print("{:<42} {:>6} {:>9} {:>9} {:>5} {:>8} {:>11}  {}\n", name, outcome.rounds,
             with_thousands(static_cast<std::int64_t>(tally.committed)),
             with_thousands(static_cast<std::int64_t>(tally.emitted)), tally.lost, tally.repeated, gap,
             outcome.problems.empty() ? "ok" : "FAILED");
  for (const auto& problem : outcome.problems)
    fmt::print("  {}\n", problem);
  for (const auto& note : outcome.notes)
    fmt::print("  {}\n", note);
  std::fflush(stdout);
}

Verdict play(const Fault& fault, Notifying notifying, Cluster& cluster, const HarnessOptions& options) {
  const int usual = options.shortened ? fault.short_rounds : fault.rounds;
  const Plan plan{.rounds = options.rounds > 0 ? options.rounds : std::max(usual, 1),
                  .notifying = notifying,
                  .seed = options.seed,
                  .shortened = options.shortened};
  Outcome outcome;
  try {
    outcome = fault.run(cluster, plan);
  } catch (const CannotBePlayed& reason) {
    fmt::print("{:<42} {:>6} {:>9} {:>9} {:>5} {:>8} {:>11}  not run\nNOT RUN: {}: {}\n", fault.name, 0, "-",
               "-", "-", "-", "-", fault.name, reason.what());
    std::fflush(stdout);
    return Verdict::not_run;
  } catch (const std::exception& error) {
    outcome.problems.push_back(error.what());
  }
  print_row(fault.name, outcome);
  return outcome.problems.empty() ? Verdict::passed : Verdict::failed;
}

/// True if a process ended with an error: a statement that always fails loses tokens whatever it was meant to
/// break.
bool has_failed(const Outcome& outcome) {
  return std::any_of(outcome.problems.begin(), outcome.problems.end(),
                     [](const auto& problem) { return problem.find("ends with 0") != std::string::npos; });
}

/// True if the oracle, and not an unrelated error, detects the broken protocol.
bool is_caught(const Sabotage& sabotage, Cluster& cluster, const HarnessOptions& options) {
  const auto faults = all_faults();
  const auto fault = std::find_if(faults.begin(), faults.end(),
                                  [&](const auto& each) { return each.name == sabotage.fault; });
  const Plan plan{.rounds = options.rounds > 0 ? options.rounds : sabotage.rounds,
                  .seed = options.seed,
                  .sabotage = &sabotage};
  try {
    const auto outcome = fault->run(cluster, plan);
    const auto& tally = outcome.tally;
    const bool is_wrong = tally.lost + tally.repeated + tally.strange + tally.untimely > 0;
    const bool is_found = !sabotage.leaves_trace || outcome.unexplained > 0;
    const bool caught =
        tally.emitted > 0 && is_wrong && is_found && !outcome.problems.empty() && !has_failed(outcome);
    fmt::print("{:<46} {:>6} {:>9} {:>9} {:>6} {:>8} {:>7} {:>8} {:>11}  {}\n", sabotage.name, outcome.rounds,
               with_thousands(static_cast<std::int64_t>(tally.committed)),
               with_thousands(static_cast<std::int64_t>(tally.emitted)), tally.lost, tally.repeated,
               tally.strange, tally.untimely, outcome.unexplained, caught ? "caught" : "NOT CAUGHT");
    for (const auto& problem : std::set<std::string>(outcome.problems.begin(), outcome.problems.end()))
      fmt::print("  {}\n", problem);
    std::fflush(stdout);
    return caught;
  } catch (const std::exception& error) {
    fmt::print("{:<46} FAILED\n  {}\n", sabotage.name, error.what());
    return false;
  }
}

int run_self_check(const HarnessOptions& options) {
  stop_clusters_on_signals();
  Cluster cluster({.tcp = true, .settings = {"recovery_init_sync_method = syncfs"}});
  fmt::print("seed {}\n{:<46} {:>6} {:>9} {:>9} {:>6} {:>8} {:>7} {:>8} {:>11}  {}\n", options.seed,
             "broken on purpose", "rounds", "committed", "emitted", "lost", "repeated", "strange", "untimely",
             "unexplained", "verdict");
  notify(Notifying::when_listening);
  int caught = 0;
  int missed = 0;
  for (const auto& sabotage : of_shard(sabotages(), options))
    ++(is_caught(sabotage, cluster, options) ? caught : missed);
  fmt::print("{} passed, {} failed\n", caught, missed);
  return missed == 0 && caught > 0 ? 0 : 1;
}

bool is_skipped(const Fault& fault, Notifying notifying, const HarnessOptions& options) {
  return options.shortened && options.only.empty() && notifying == Notifying::always && !fault.short_always;
}

int run_harness(const HarnessOptions& options) {
  const auto faults = chosen_faults(options);
  if (options.list) {
    for (const auto& fault : faults)
      fmt::print("{:<42} {}\n", fault.name, fault.expectation);
    return 0;
  }
  stop_clusters_on_signals();
  Cluster cluster({.tcp = true, .settings = {"recovery_init_sync_method = syncfs"}});
  std::map<Verdict, int> verdicts;
  for (const auto& [name, notifying] : notifying_names) {
    if (options.notifying.value_or(notifying) != notifying) continue;
    notify(notifying);
    fmt::print("seed {}, notify: {}\n{:<42} {:>6} {:>9} {:>9} {:>5} {:>8} {:>11}  {}\n", options.seed, name,
               "fault", "rounds", "committed", "emitted", "lost", "repeated", "longest gap", "verdict");
    for (const auto& fault : faults) {
      if (!is_skipped(fault, notifying, options)) ++verdicts[play(fault, notifying, cluster, options)];
    }
  }
  if (verdicts[Verdict::not_run] > 0) fmt::print("{} not run\n", verdicts[Verdict::not_run]);
  fmt::print("{} passed, {} failed\n", verdicts[Verdict::passed], verdicts[Verdict::failed]);
  return verdicts[Verdict::failed] == 0 && verdicts[Verdict::passed] > 0 ? 0 : 1;
}

}  // namespace
}  // namespace mailroom::test

int main(int argc, char** argv) {
  using namespace mailroom::test;
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() == 5 && words[1] == "--step-collector")
    return run_step_collector(words[2], std::stoi(words[3]), std::stoi(words[4]));
  HarnessOptions options;
  CLI::App app("Run faults against collectors on a temporary PostgreSQL server.");
  app.add_flag("--list", options.list, "List the faults and their expectations");
  app.add_flag("--short", options.shortened, "Run a few rounds of each fault");
  app.add_flag("--self-check", options.self_check,
               "Break the protocol on purpose, and check that the oracle detects it");
  app.add_flag(
      "--interleavings", options.interleavings,
      "Instead of faults, play every order of the statements of a few sessions, with a crash at each point; "
      "--list, --short, --self-check and --only apply");
  app.add_option("--only", options.only, "Run only faults whose name contains this; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--rounds", options.rounds, "Run this many rounds of each fault");
  app.add_option("--seed", options.seed, "Set the seed of random choices");
  app.add_option("--notify", options.notifying, "Run only with this collect.notify: when_listening or always")
      ->transform(CLI::CheckedTransformer(notifying_names));
  app.add_option_function<std::string>(
         "--shard",
         [&](const std::string& text) {
           if (std::sscanf(text.c_str(), "%d/%d", &options.shard, &options.shards) != 2 ||
               options.shard < 1 || options.shard > options.shards)
             throw CLI::ValidationError("--shard", "takes I/N, such as 1/2");
         },
         "Of N runs beside each other, be the one of number I: run each N-th fault")
      ->type_name("I/N");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.interleavings)
      return run_interleavings(
          {.list = options.list,
           .is_short = options.shortened,
           .self_check = options.self_check,
           .is_wanted = [&](const std::string& name) { return is_wanted(name, options); }});
    return options.self_check ? run_self_check(options) : run_harness(options);
  } catch (const std::exception& error) {
    std::cerr << "fault_harness: " << error.what() << '\n';
    return 1;
  }
}
