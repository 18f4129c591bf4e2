// mailroom simulate: creates accounts and messages, acts for the people who get the mails, and removes all of
// it again.

#include <csignal>
#include <fmt/format.h>
#include <random>

#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/simulate/simulate_report.hpp"
#include "cmd/terminal/progress_bar.hpp"
#include "queue/action.hpp"
#include "simulation/emission_watch.hpp"
#include "simulation/simulation.hpp"

namespace mailroom::cmd {
namespace {

struct SimulateOptions {
  simulation::SimulationRequest request;  ///< without accounts and messages: only to clean up
  std::optional<Milliseconds> timeout;
  std::optional<std::uint64_t> seed;
  bool clean_up = false;
};

simulation::SimulationRequest make_request(const SimulateOptions& options) {
  auto request = options.request;
  if (request.shares.recover > 0 && request.shares.activate <= 0) {
    throw Error(ExitCode::usage, "--recover applies to activated accounts, and there are none",
                "give --activate too, for example --activate 100");
  }
  request.seed = options.seed ? *options.seed : std::random_device()();
  request.timeout = options.timeout.value_or(request.timeout);
  return request;
}

simulation::SimulationTally play(db::Connection& connection, const simulation::SimulationRequest& request,
                                 process::StopSignal& stop, ProgressBar& bar) {
  return simulation::simulate(connection, request, stop, [&](const simulation::SimulationTally& tally) {
    auto text = request.accounts > 0 ? fmt::format("{}/{} accounts", with_thousands(tally.accounts),
                                                   with_thousands(request.accounts))
                                     : "";
    if (tally.waiting > 0) text += fmt::format(" {} waiting", with_thousands(tally.waiting));
    if (request.messages > 0 && tally.waiting == 0)
      text = fmt::format("{}/{} messages", with_thousands(tally.messages), with_thousands(request.messages));
    bar.show(static_cast<double>(tally.accounts + tally.messages) /
                 static_cast<double>(request.accounts + request.messages),
             text);
  });
}

/// Throws Error(interrupted or terminated), with a hint how to remove what was created so far.
[[noreturn]] void end_stopped(const SimulateReport& report, const SimulateOptions& options, int number) {
  const auto seed = report.seed ? report.seed : options.seed;
  const bool is_interrupt = number == SIGINT;
  std::string hint;
  if (!report.removed || report.cut_short) {
    hint = fmt::format("to remove what it created: mailroom simulate --clean-up{}",
                       seed ? fmt::format(" --seed {}", *seed) : "");
  }
  throw Error(is_interrupt ? ExitCode::interrupted : ExitCode::terminated,
              fmt::format("stopped by {} before the end", is_interrupt ? "SIGINT" : "SIGTERM"), hint);
}

ExitCode run_simulate(const SimulateOptions& options, Context& context) {
  const bool simulates = options.request.accounts > 0 || options.request.messages > 0;
  if (!simulates && !options.clean_up) {
    throw Error(ExitCode::usage, "--accounts or --messages is required",
                "for example: mailroom simulate --accounts 5");
  }
  if (options.request.rate && !simulates)
    throw Error(ExitCode::usage, "--rate requires --accounts or --messages",
                "mailroom simulate --help shows the options");
  std::optional<simulation::SimulationRequest> request;
  if (simulates) request = make_request(options);
  const auto connection = context.connect_to_schema("simulate");
  context.require_own_session(*connection, "simulate");
  if (request && request->shares.activate > 0)
    simulation::require_queue_for(*connection, queue::Actions::of_sign_up().name);
  if (request && request->shares.recover > 0)
    simulation::require_queue_for(*connection, queue::Actions::of_recovery().name);
  process::StopSignal stop;
  SimulateReport report;
  {
    ProgressBar bar(context.err(), context.global().quiet, context.colour_on(context.err()));
    if (request) {
      report.seed = request->seed;
      report.played = play(*connection, *request, stop, bar);
    }
    report.stopped = stop.requested();
    if (options.clean_up) {
      // A stopped simulation is still cleaned up; a stop during the cleanup ends the cleanup.
      const bool was_stopped = report.stopped;
      const auto seed = report.seed ? report.seed : options.seed;
      const auto prefix =
          seed ? simulation::simulated_prefix(*seed) : std::string(simulation::simulated_login_start);
      report.removed = simulation::remove_simulated(*connection, prefix, [&](std::int64_t removed) {
        bar.show(std::nullopt, fmt::format("{} accounts and messages removed", with_thousands(removed)));
        return was_stopped || !stop.requested();
      });
      report.cut_short = !was_stopped && stop.requested();
      report.stopped = report.stopped || report.cut_short;
    }
  }
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? render_json(report) : render_text(report));
  if (report.stopped) end_stopped(report, options, stop.number());
  return ExitCode::done;
}

Run add_simulate(CommandSyntax& syntax) {
  auto options = std::make_shared<SimulateOptions>();
  auto& request = options->request;
  const auto accounts =
      syntax.number<std::int64_t>("--accounts N", request.accounts, {1, 100'000'000}, "create N accounts");
  syntax.number<std::int64_t>("--messages N", request.messages, {1, 100'000'000},
                              "send N messages of 2 kB each");
  const auto add_percent = [&](const std::string& spec, double& value, const std::string& help) {
    syntax.number<double>(spec, value, {0, 100}, help).needs(accounts);
  };
  syntax.number<double>(
      "--rate R", request.rate, {0.001, 1'000'000},
      "create R accounts or messages a second, one per transaction [all at once, 1,000 per transaction]");
  add_percent("--activate PCT", request.shares.activate,
              "activate PCT percent of the accounts once their token is emitted");
  add_percent("--recover PCT", request.shares.recover,
              "then recover the password of PCT percent of the activated accounts");
  syntax
      .duration("--timeout DURATION", options->timeout, {Milliseconds{1}, std::chrono::hours(24)},
                "fail when tokens wait and none is emitted for this long [1m]")
      .needs(accounts);
  syntax.number<std::uint64_t>(
      "--seed S", options->seed, {0},
      "the number in the names of accounts and messages [random; the summary shows it]");
  syntax.flag("--clean-up", options->clean_up,
              "remove the simulated accounts and messages of this run or of --seed; alone, all");
  return [options](Context& context) { return run_simulate(*options, context); };
}

}  // namespace

const Command simulate_command{
    "simulate", "create accounts and simulate their lifecycle, as a trial",
    "Examples:\n"
    "  mailroom simulate --accounts 1000 --rate 500 --activate 80 --recover 25\n"
    "  mailroom simulate --messages 1000    send a thousand messages\n"
    "  mailroom simulate --clean-up         remove what simulate created\n",
    add_simulate,
    "Creates accounts and simulates their lifecycle. With --accounts alone each account gets an activation "
    "token and nothing more. With --activate some of the accounts are activated, and with --recover some of "
    "those recover their password. A token is consumed once a collector of any queue has emitted it, so start "
    "a collector as well, as a service or into a file, for queues that take the actions that are "
    "simulated.\n\n"
    "With --messages it sends messages, after the accounts if there are any.\n\n"
    "On a terminal a bar shows the progress. A summary at the end shows what was done, and how fast. The first "
    "SIGINT or SIGTERM ends the simulation with exit status 130 or 143. What was created so far is kept and "
    "summarized, and the hint shows how to remove it.\n\n"
    "All addresses end in simulate.mailroom.example, a reserved name that no mail reaches. A sender that "
    "reads a collector's output would still try to send to them, so do not simulate where mail is really "
    "sent. --clean-up removes what simulate created, and nothing else."};

}  // namespace mailroom::cmd
