// mailroom reconcile: accounts for every token of a period, and fails if one was missed or is unexplained.

#include <fmt/format.h>

#include "cmd/command.hpp"
#include "cmd/reconcile/reconcile_report.hpp"
#include "cmd/selection/people_list.hpp"
#include "cmd/selection/selection_options.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

/// How to print the result; `global` is what the global option says.
enum class ReconcileFormat { global, text, json, csv, prometheus };

struct ReconcileOptions {
  ReconcileFormat format = ReconcileFormat::global;
  SelectionOptions selectors;
  std::optional<std::string> list;
  std::vector<std::string> against;
};

/// The lines do not always name their queue, so there must be one only.
const std::string& only_queue(const std::vector<std::string>& queues) {
  if (queues.size() == 1) return queues.front();
  throw Error(ExitCode::usage, fmt::format("--against needs one queue, and there are {}", queues.size()),
              "name the queue whose consumers wrote the files with --queue");
}

ReconcileFormat format_of(const ReconcileOptions& options, const Context& context) {
  if (options.format != ReconcileFormat::global) return options.format;
  return context.global().output == OutputFormat::json ? ReconcileFormat::json : ReconcileFormat::text;
}

std::string render(const ReconcileReport& report, ReconcileFormat format) {
  if (format == ReconcileFormat::prometheus) return render_metrics(report);
  return format == ReconcileFormat::json ? render_json(report) : render_text(report);
}

/// What --list names, and what the selectors do.
SelectionOptions listed_by(const ReconcileOptions& options) {
  auto selectors = options.selectors;
  for (const auto& word : selection::split_list(options.list.value_or("")))
    select_outcome(selectors.typed, "--list", word);
  return selectors;
}

/// Refuses what does not go together, and values that no database is needed to refuse.
void check(const ReconcileOptions& options, ReconcileFormat format) {
  check_selection(options.selectors);
  auto narrowing = options.selectors;
  narrowing.since.clear();
  narrowing.until.clear();
  if (!options.list && !narrowing.empty()) {
    throw Error(ExitCode::usage, "without --list, only --queue, --since and --until narrow what is counted",
                "add --list, with the outcomes to list");
  }
  if (!options.list && format == ReconcileFormat::csv)
    throw Error(ExitCode::usage, "-o csv needs --list", "the counts are printed as text, json or prometheus");
  if (options.list && format == ReconcileFormat::prometheus)
    throw Error(ExitCode::usage, "--list prints text, json or csv, not prometheus",
                "omit --list for the counts");
  if (options.list && !options.selectors.typed.outcomes.empty())
    throw Error(ExitCode::usage, "--list and --outcome cannot be combined", "--list takes the outcomes");
  if (options.list) listed_by(options);
}

PeopleFormat people_format(ReconcileFormat format) {
  if (format == ReconcileFormat::csv) return PeopleFormat::csv;
  return format == ReconcileFormat::json ? PeopleFormat::json : PeopleFormat::text;
}

ExitCode run_reconcile(const ReconcileOptions& options, Context& context) {
  const auto format = format_of(options, context);
  check(options, format);
  const auto connection = context.connect_to_schema("reconcile");
  const auto waits = context.watch_waits(*connection, "reconcile");
  reconcile::ReconcileRequest request{.queues = status::shown_queues(*connection, context.settings()),
                                      .since = options.selectors.first_creation(),
                                      .until = options.selectors.until,
                                      .counts_accounts = true};
  std::optional<reconcile::ConsumerOutput> output;
  if (!options.against.empty()) {
    output = reconcile::read_consumer_output(*connection, signing::load_key_ring(context.settings()),
                                             only_queue(request.queues), options.against);
    request.output = &*output;
  }
  const auto result =
      options.list ? print_people(context, *connection, request,
                                  read_selection(*connection, listed_by(options)), people_format(format))
                   : reconcile::reconcile(*connection, request);
  const ReconcileReport report{.result = result, .output = request.output};
  if (!options.list) context.print(render(report, format));
  if (options.list && format == ReconcileFormat::text) context.print("\n" + render_text(report));
  return is_explained(report) ? ExitCode::done : ExitCode::unusable;
}

Run add_reconcile(CommandSyntax& syntax) {
  auto options = std::make_shared<ReconcileOptions>();
  const config::Choices<ReconcileFormat> formats{{"text", ReconcileFormat::text},
                                                 {"json", ReconcileFormat::json},
                                                 {"csv", ReconcileFormat::csv},
                                                 {"prometheus", ReconcileFormat::prometheus}};
  syntax.choice("-o,--output FORMAT", options->format, formats, "text, json, csv or prometheus",
                "print text, json, for --list csv or, for Prometheus' node_exporter, prometheus");
  syntax
      .text(
          "--list [OUTCOME,...]", options->list,
          "list the people whose tokens have these outcomes [missed,unexplained]; perhaps_twice: who may have got a "
          "mail twice; in_flight: what was under way when a relay or a sender ended")
      .value_optional("missed,unexplained")
      .offers(outcome_choices());
  syntax
      .texts("--against FILE...", options->against,
             "compare with what consumers have written into these files, - for stdin; repeatable")
      .with_several_values();
  add_selectors(syntax, options->selectors, "24h");
  add_mailing_selectors(syntax, options->selectors);
  return [options](Context& context) { return run_reconcile(*options, context); };
}

}  // namespace

const Command reconcile_command{
    "reconcile", "account for every token of a period",
    "Examples:\n"
    "  mailroom reconcile                        the tokens of the last 24 hours\n"
    "  mailroom reconcile --list rejected,expired,skipped -o csv\n"
    "  mailroom reconcile --since 25h -o prometheus\n"
    "\n"
    "--list names account, login, address, token, outcome, time and reason of each.\n"
    "An address is the one that was mailed to; without a mail, that of the account.\n"
    "With --list the selectors narrow the list. expired includes those that were\n"
    "skipped as expired. The list is printed as it is found, nearly in the order of\n"
    "tokens.\n"
    "\n"
    "Exit code 8 if a token was missed or is unexplained, or if a message has no\n"
    "token since its trigger did not fire. It reads one snapshot,\n"
    "takes no lock that anything waits for, and works on a standby.\n",
    add_reconcile,
    "Finds exactly one outcome for every committed token of a period in each queue: emitted once, or several times and "
    "which rewind, replay or take-over explains it; accepted, rejected, deferred and so on; skipped, and why; "
    "waiting, leased, or in a gap, and which session holds it; moved past by an operator, and by whom. A token that "
    "was created after the cursor had passed its id is missed. What fits nowhere is unexplained: a token that was "
    "lost, or a record that somebody changed.\n\n"
    "--list prints a line for each person: as text before the counts, or as JSON lines or CSV without them. Its words are the "
    "outcomes; mailroom audit --outcome prints the same list. So the next morning names everybody of yesterday "
    "who got no mail: mailroom reconcile --since 2026-11-21 --until 2026-11-22 --list "
    "rejected,unknown,expired,cancelled,skipped,dead -o csv.\n\n"
    "--against reads what consumers have written, lines as collect writes them, verifies each token and compares them with "
    "the records: a token that is on record as emitted must be in a file, and as often as it was leased at most. It "
    "takes one queue, the files of all its consumers in the period, and the keys.\n\n"
    "It compares the records of batches with the tokens as ranges of ids, so ten million tokens take seconds. "
    "Exit status 0 means that nothing is missed or unexplained."};

}  // namespace mailroom::cmd
