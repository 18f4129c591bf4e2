// mailroom reconcile: accounts for every token of a period, and fails if one was missed or is unexplained.

#include <fmt/format.h>

#include "cmd/command.hpp"
#include "cmd/reconcile/reconcile_report.hpp"
#include "status/queue_status.hpp"

namespace mailroom {
namespace {

/// How to print the result; `global` is what the global option says.
enum class ReconcileFormat { global, text, json, prometheus };

struct ReconcileOptions {
  ReconcileFormat format = ReconcileFormat::global;
  ReconcileRequest request;
  bool list = false;
  std::vector<std::string> against;
};

/// The lines do not always name their queue, so there must be one only.
const std::string& only_queue(const std::vector<std::string>& queues) {
  if (queues.size() == 1) return queues.front();
  throw Error(ExitCode::usage, fmt::format("--against needs one queue, and there are {}", queues.size()),
              "name the queue whose consumers wrote the files with --queue");
}

std::string render(const ReconcileReport& report, ReconcileFormat format, OutputFormat global) {
  if (format == ReconcileFormat::prometheus) return render_metrics(report);
  const bool json =
      format == ReconcileFormat::json || (format == ReconcileFormat::global && global == OutputFormat::json);
  return json ? render_json(report) : render_text(report);
}

ExitCode run_reconcile(const ReconcileOptions& options, Context& context) {
  auto request = options.request;
  // Refuses invalid moments before the command connects.
  parse_period(request.since, "", {});
  parse_period("", request.until, {});
  const auto connection = context.connect_to_schema("reconcile");
  const auto waits = context.watch_waits(*connection, "reconcile");
  request.queues = shown_queues(*connection, context.settings());
  std::optional<ConsumerOutput> output;
  if (!options.against.empty()) {
    output = read_consumer_output(*connection, load_key_ring(context.settings()), only_queue(request.queues),
                                  options.against);
    request.output = &*output;
  }
  const auto result = reconcile(*connection, request);
  const ReconcileReport report{.result = result, .output = request.output, .lists_ids = options.list};
  context.print(render(report, options.format, context.global().output));
  return is_explained(report) ? ExitCode::done : ExitCode::unusable;
}

Run add_reconcile(CommandSyntax& syntax) {
  auto options = std::make_shared<ReconcileOptions>();
  const Choices<ReconcileFormat> formats{{"text", ReconcileFormat::text},
                                         {"json", ReconcileFormat::json},
                                         {"prometheus", ReconcileFormat::prometheus}};
  syntax.choice("-o,--output FORMAT", options->format, formats, "text, json or prometheus",
                "print text, json or, for Prometheus' node_exporter, prometheus");
  syntax.text("--since TIME", options->request.since,
              "account for tokens created from TIME on: 2h, 2026-11-21T09:30 [24h]");
  syntax.text("--until TIME", options->request.until, "account for tokens created before TIME [now]");
  syntax.flag("--list", options->list, "list all ids of missed and unexplained tokens, as ranges");
  syntax
      .texts("--against FILE...", options->against,
             "compare with what consumers have written into these files, - for stdin; repeatable")
      .with_several_values();
  return [options](Context& context) { return run_reconcile(*options, context); };
}

}  // namespace

const Command reconcile_command{
    "reconcile", "account for every token of a period",
    "Examples:\n"
    "  mailroom reconcile                        the tokens of the last 24 hours\n"
    "  mailroom reconcile --since 2026-11-01 --list\n"
    "  mailroom reconcile --since 25h -o prometheus\n"
    "\n"
    "Exit code 8 if a token was missed or is unexplained. It reads one snapshot,\n"
    "takes no lock that anything waits for, and works on a standby.\n",
    add_reconcile,
    "Finds exactly one outcome for every committed token of a period in each queue: emitted once, or several times and "
    "which rewind, replay or take-over explains it; accepted, rejected, deferred and so on; skipped, and why; "
    "waiting, leased, or in a gap, and which session holds it; moved past by an operator, and by whom. A token that "
    "was created after the cursor had passed its id is missed. What fits nowhere is unexplained: a token that was "
    "lost, or a record that somebody changed.\n\n"
    "--against reads what consumers have written, lines as collect writes them, verifies each token and compares them with "
    "the records: a token that is on record as emitted must be in a file, and as often as it was leased at most. It "
    "takes one queue, the files of all its consumers in the period, and the keys.\n\n"
    "It compares the records of batches with the tokens as ranges of ids, so ten million tokens take seconds. "
    "Exit status 0 means that nothing is missed or unexplained."};

}  // namespace mailroom
