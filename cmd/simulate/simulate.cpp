// mailroom simulate: creates accounts, acts for their users, measures both, and removes the accounts again.

#include <csignal>
#include <fmt/format.h>
#include <random>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "cmd/command.hpp"
#include "cmd/simulate/simulate_report.hpp"
#include "cmd/terminal/progress_bar.hpp"
#include "process/retry.hpp"
#include "process/stop_watcher.hpp"
#include "queue/action.hpp"
#include "simulation/emission_watch.hpp"
#include "simulation/simulated_messages.hpp"
#include "simulation/simulated_rows.hpp"
#include "simulation/simulation.hpp"

namespace mailroom {
namespace {

struct SimulateOptions {
  SimulationRequest request;  ///< without accounts if only to send messages or to clean up
  std::int64_t messages = 0;
  std::optional<Milliseconds> timeout;
  std::optional<std::uint64_t> seed;
  bool clean_up = false;
};

SimulationRequest make_request(const SimulateOptions& options) {
  auto request = options.request;
  if (request.shares.recover > 0 && request.shares.activate <= 0) {
    throw Error(ExitCode::usage, "--recover applies to activated accounts, and there are none",
                "give --activate too, for example --activate 100");
  }
  request.seed = options.seed ? *options.seed : std::random_device()();
  request.timeout = options.timeout.value_or(request.timeout);
  return request;
}

/// Connects, and logs when a connection is lost or restored, erasing the progress bar first.
class Line {
 public:
  Line(Context& context, const StopSignal& stop, ProgressBar& bar)
      : context_(context),
        stop_(stop),
        target_(configured_database(context.settings())),
        bar_(bar),
        retries_(context.log()) {}

  std::unique_ptr<Connection> connect() const {
    return connect_until_stopped(stop_, target_, "mailroom simulate");
  }
  void lost(const std::string& reason) {
    bar_.erase();
    retries_.failed("connection lost, connecting again", reason, steady_now());
  }
  void back() {
    bar_.erase();
    if (retries_.is_news()) context_.log().info("connected again");
    retries_.worked();
  }

 private:
  Context& context_;
  const StopSignal& stop_;
  DatabaseTarget target_;
  ProgressBar& bar_;
  RetryLog retries_;
};

SimulationSummary play(const SimulationRequest& request, Context& context, const StopSignal& stop,
                       ProgressBar& bar) {
  Line line(context, stop, bar);
  bool was_lost = false;
  const auto report = [&](const SimulationProgress& progress) {
    if (progress.lost > 0) line.lost(progress.reason);
    if (was_lost && progress.lost == 0) line.back();
    was_lost = progress.lost > 0;
    auto text =
        fmt::format("{}/{} accounts", with_thousands(progress.accounts), with_thousands(request.accounts));
    if (progress.waiting > 0) text += fmt::format(" {} waiting", with_thousands(progress.waiting));
    bar.show(static_cast<double>(progress.accounts) / static_cast<double>(request.accounts), text);
  };
  SimulationSummary summary;
  context.explain_unreachable([&] {
    summary = simulate(
        request, [&] { return line.connect(); }, stop, report);
  });
  return summary;
}

/// A connection that outlasts a restart of the server.
LastingConnection lasting_connection(std::unique_ptr<Connection> connection, Line& line,
                                     const std::function<bool()>& go_on, Milliseconds longest) {
  return {std::move(connection),
          {.connect = [&line] { return line.connect(); },
           .patience = longest,
           .go_on = go_on,
           .lost = [&line](const std::string& why) { line.lost(why); },
           .back = [&line] { line.back(); }}};
}

MessageTally send(const SimulationRequest& request, std::int64_t messages, Context& context,
                  const StopSignal& stop, ProgressBar& bar) {
  Line line(context, stop, bar);
  const auto go_on = [&] { return !stop.requested(); };
  auto lasting = lasting_connection(line.connect(), line, go_on, request.timeout);
  return send_messages(
      lasting, {.messages = messages, .seed = request.seed, .rate = request.rate}, [&](std::int64_t sent) {
        bar.show(static_cast<double>(sent) / static_cast<double>(messages),
                 fmt::format("{}/{} messages", with_thousands(sent), with_thousands(messages)));
        return go_on();
      });
}

std::int64_t clean_up(std::unique_ptr<Connection> connection, const std::string& login_prefix,
                      const std::function<bool()>& go_on, Context& context, const StopSignal& stop,
                      ProgressBar& bar) {
  Line line(context, stop, bar);
  auto lasting = lasting_connection(std::move(connection), line, go_on, SimulationRequest{}.timeout);
  const auto show = [&](const char* what) {
    return [&bar, &go_on, what](std::int64_t removed) {
      bar.show(std::nullopt, fmt::format("{} {} removed", with_thousands(removed), what));
      return go_on();
    };
  };
  const auto accounts = remove_simulated_accounts(lasting, login_prefix, show("accounts"));
  if (!go_on()) return accounts;
  return accounts + remove_simulated_messages(lasting, login_prefix, show("messages"));
}

/// Throws Error(interrupted or terminated), with a hint how to remove the accounts created so far.
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
  const bool plays = options.request.accounts > 0;
  const bool simulates = plays || options.messages > 0;
  if (!simulates && !options.clean_up) {
    throw Error(ExitCode::usage, "--accounts or --messages is required",
                "for example: mailroom simulate --accounts 5");
  }
  if (options.request.rate && !simulates)
    throw Error(ExitCode::usage, "--rate requires --accounts or --messages",
                "mailroom simulate --help shows the options");
  std::optional<SimulationRequest> request;
  if (simulates) request = make_request(options);
  auto connection = context.connect_to_schema("simulate");
  context.require_own_session(*connection, "simulate");
  if (plays && !request->delay) {
    if (request->shares.activate > 0) require_queue_for(*connection, Actions::of_sign_up().name);
    if (request->shares.recover > 0) require_queue_for(*connection, Actions::of_recovery().name);
  }
  const StopSignal stop;
  SimulateReport report;
  {
    ProgressBar bar(context.err(), context.global().quiet, context.colour_on(context.err()));
    if (request) {
      report.seed = request->seed;
      if (plays) report.played = play(*request, context, stop, bar);
      report.stopped = report.played && report.played->stopped;
      if (options.messages > 0 && !report.stopped) {
        context.explain_unreachable(
            [&] { report.sent = send(*request, options.messages, context, stop, bar); });
        report.stopped = report.sent->messages < options.messages;
      }
    }
    if (options.clean_up) {
      // A stopped simulation is still cleaned up; a stop during the cleanup ends the cleanup.
      const bool was_stopped = report.stopped;
      const auto seed = report.seed ? report.seed : options.seed;
      const auto prefix = seed ? simulated_prefix(*seed) : std::string(simulated_login_start);
      report.removed = clean_up(
          std::move(connection), prefix, [&] { return was_stopped || !stop.requested(); }, context, stop,
          bar);
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
  constexpr Milliseconds longest = std::chrono::hours(24);
  const auto accounts =
      syntax.number<std::int64_t>("--accounts N", request.accounts, {1, 100'000'000}, "create N accounts");
  syntax.number<std::int64_t>("--messages N", options->messages, {1, 100'000'000},
                              "send N messages of 2 kB each");
  const auto add_percent = [&](const std::string& spec, double& value, const std::string& help) {
    syntax.number<double>(spec, value, {0, 100}, help).needs(accounts);
  };
  syntax.number<double>(
      "--rate R", request.rate, {0.001, 1'000'000},
      "create R accounts or messages a second, one per transaction [all at once, 1,000 per transaction]");
  syntax
      .number<int>("--connections C", request.connections, {1, 64},
                   "use C connections, 1 to 64, and one more to monitor [1]")
      .needs(accounts);
  add_percent("--activate PCT", request.shares.activate,
              "activate PCT percent of the accounts once their token is emitted");
  add_percent("--recover PCT", request.shares.recover,
              "then recover the password of PCT percent of the activated accounts");
  add_percent("--suspend PCT", request.shares.suspend, "suspend PCT percent of the accounts at the end");
  syntax
      .duration("--delay DURATION", request.delay, {Milliseconds{0}, longest},
                "consume tokens this long after their creation, emitted or not")
      .needs(accounts);
  syntax
      .duration("--timeout DURATION", options->timeout, {Milliseconds{1}, longest},
                "fail when tokens wait and none is emitted for this long [1m]")
      .needs(accounts);
  syntax.number<std::uint64_t>("--seed S", options->seed, {0},
                               "repeat the simulation with seed S [random; the summary shows it]");
  syntax.flag("--clean-up", options->clean_up,
              "remove the simulated accounts and messages of this run or of --seed; alone, all");
  return [options](Context& context) { return run_simulate(*options, context); };
}

}  // namespace

const Command simulate_command{
    "simulate", "create accounts and simulate their lifecycle, as a trial or a load",
    "Examples:\n"
    "  mailroom simulate --accounts 1000 --rate 500 --activate 80 --recover 25\n"
    "  mailroom simulate --messages 1000    send a thousand messages\n"
    "  mailroom simulate --clean-up         remove what simulate created\n",
    add_simulate,
    "Creates accounts and simulates their lifecycle. With --accounts alone each account gets an activation "
    "token and nothing more. With --activate some of the accounts are activated, with --recover some of "
    "those recover their password, and with --suspend some are suspended at the end. A token is consumed "
    "once a collector of any queue has emitted it, so start a collector as well, as a service or into a file, for "
    "queues that take the actions that are simulated. With "
    "--delay tokens are consumed after that time, and no collector is needed.\n\n"
    "With --messages it sends messages, after the accounts if there are any.\n\n"
    "On a terminal a bar shows the progress. A summary at the end shows what was done, how fast, and how "
    "long the transactions took. The first SIGINT or SIGTERM ends the simulation with exit status 130 or "
    "143. The accounts created so far are kept and summarized, and the hint shows how to remove them. "
    "After a lost connection, as in a restart of the server, simulate tries to reconnect for up to "
    "--timeout.\n\n"
    "All addresses end in simulate.mailroom.example, a reserved name that no mail reaches. A sender that "
    "reads a collector's output would still try to send to them, so do not simulate where mail is really "
    "sent. --clean-up removes what simulate created, and nothing else."};

}  // namespace mailroom
