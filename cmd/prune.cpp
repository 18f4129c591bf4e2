#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/stop_signal.hpp"
#include "base/text.hpp"
#include "base/who.hpp"
#include "cmd/commands.hpp"
#include "cmd/confirm.hpp"
#include "cmd/progress_bar.hpp"
#include "cmd/prune_report.hpp"

namespace mailroom {
namespace {

struct PruneOptions {
  bool dry_run = false;
  int step = 1000;
  std::optional<Milliseconds> pause;
  std::string reason;
};

using Work = std::function<PruneSummary(const PruneObserver&)>;

/// Does `work` under a progress bar until it is done or a signal comes, with `pause` between its steps.
PruneSummary under_way(Context& context, const std::string& verb, Milliseconds pause, const Work& work) {
  StopSignal stop;
  ProgressBar bar(context.err(), context.global().quiet, context.colour_on(context.err()));
  return work([&](const PruneProgress& progress) {
    bar.show(progress.fraction, fmt::format("{} and {} {}", counted(progress.tokens, "token"),
                                            counted(progress.batches, "batch record"), verb));
    if (pause > Milliseconds::zero() && progress.fraction < 1) stop.sleep_for(pause);
    return !stop.requested();
  });
}

/// Counts, unless nobody wants to know beforehand; asks; removes.
PruneReport prune(const PruneOptions& options, Milliseconds pause, Context& context, Connection& connection) {
  const auto older_than = context.settings().audit_retention;
  Pruner pruner(connection, older_than, options.step);
  PruneReport report{.before = pruner.before(), .older_than = older_than};
  if (options.dry_run || !context.global().yes) {
    report.summary = under_way(context, "to go", {}, [&](const auto& go_on) { return pruner.count(go_on); });
    report.dry_run = options.dry_run || report.summary.stopped;
    if (report.dry_run || report.summary.empty()) return report;
    confirm(context,
            fmt::format("remove {} and {} older than {}?", counted(report.summary.tokens, "token"),
                        counted(report.summary.batches, "batch record"), format_duration(older_than)));
  }
  const PruneAuthor author{.actor = operator_name(), .reason = options.reason};
  report.summary =
      under_way(context, "removed", pause, [&](const auto& go_on) { return pruner.remove(author, go_on); });
  return report;
}

ExitCode run_prune(const PruneOptions& options, Context& context) {
  const auto pause = options.pause.value_or(Milliseconds{0});
  const auto connection = context.connect_to_schema("prune");
  context.require_own_session(*connection, "prune");
  const auto report = prune(options, pause, context, *connection);
  const bool json = context.global().output == OutputFormat::json;
  if (json) {
    context.print(render_json(report));
  } else {
    context.say(render_text(report));
  }
  return ExitCode::done;
}

Run add_prune(CommandSyntax& syntax) {
  auto options = std::make_shared<PruneOptions>();
  syntax.setting("--older-than DURATION", "audit.retention",
                 "remove what ended so long ago (else audit.retention) [30d]");
  syntax.flag("--dry-run", options->dry_run, "count what would go, and change nothing");
  syntax.number<int>("--step N", options->step, {1, 100'000},
                     "rows that one transaction removes at the most [1000]");
  syntax.duration("--pause DURATION", options->pause, {Milliseconds{0}, std::chrono::hours(1)},
                  "rest so long between two transactions [0s]");
  syntax.text("--reason TEXT", options->reason, "why, for the record");
  return [options](Context& context) { return run_prune(*options, context); };
}

}  // namespace

const Command prune_command{
    "prune", "remove tokens long expired or consumed, and old batch records",
    "Examples:\n"
    "  mailroom prune --dry-run                      count what would go\n"
    "  mailroom prune                                ask, and remove it\n"
    "  mailroom prune --yes --older-than 90d         as from a timer, once a day\n"
    "\n"
    "Runs beside collectors, and stops at a signal after the step in hand. Stays:\n"
    "a token that is due, that a queue has not passed yet, or that is in an open\n"
    "batch; a batch record that is open, the newest of its queue, or of a token\n"
    "that stays; accounts, and the records of operations and of the schema.\n",
    add_prune,
    "Removes tokens that expired or were consumed longer ago than audit.retention, and "
    "the batch records that no token needs any more. It goes in steps of --step rows, "
    "each a short transaction that takes row locks only and waits for none. What it "
    "removed is on record; --dry-run counts exactly what would go."};

}  // namespace mailroom
