#include "cmd/commands.hpp"
#include "cmd/reconcile/reconcile_report.hpp"
#include "status/shown_queues.hpp"

namespace mailroom {
namespace {

struct ReconcileOptions {
  ReconcileRequest request;
  bool list = false;
};

ExitCode run_reconcile(const ReconcileOptions& options, Context& context) {
  auto request = options.request;
  // Refuses invalid moments before the command connects.
  parse_period(request.since, "", {});
  parse_period("", request.until, {});
  const auto connection = context.connect_to_schema("reconcile");
  request.queues = shown_queues(*connection, context.settings());
  const auto result = reconcile(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? render_json(result, options.list)
                     : render_text(result, options.list));
  return result.unexplained_tokens() > 0 ? ExitCode::unusable : ExitCode::done;
}

Run add_reconcile(CommandSyntax& syntax) {
  auto options = std::make_shared<ReconcileOptions>();
  syntax.text("--since TIME", options->request.since,
              "account for tokens created from TIME on: 2h, 2026-11-21T09:30 [24h]");
  syntax.text("--until TIME", options->request.until, "account for tokens created before TIME [now]");
  syntax.setting("--queue NAME", "collect.queue", "account for them in this queue [each]");
  syntax.flag("--list", options->list, "list all ids of unexplained tokens, as ranges");
  return [options](Context& context) { return run_reconcile(*options, context); };
}

}  // namespace

const Command reconcile_command{
    "reconcile", "account for every token of a period",
    "Examples:\n"
    "  mailroom reconcile                     the tokens of the last 24 hours\n"
    "  mailroom reconcile --since 2026-11-01 --list\n"
    "  mailroom reconcile -o json --queue recovery\n"
    "\n"
    "Exit code 8 if a token is unexplained. It reads one snapshot, takes no lock\n"
    "that anything waits for, and works on a standby.\n",
    add_reconcile,
    "Puts every committed token of a period into exactly one class per queue: emitted once, or several times and "
    "which rewind, replay or take-over explains it; accepted, rejected, deferred and so on; skipped, and why; "
    "waiting, in flight, or in a gap, and which session holds it; moved past by an operator, and by whom. What fits "
    "nowhere is unexplained: a token that was lost, or a record that somebody changed.\n\n"
    "It compares the records of batches with the tokens as ranges of ids, so ten million tokens take seconds. "
    "Exit status 0 means that nothing is unexplained."};

}  // namespace mailroom
