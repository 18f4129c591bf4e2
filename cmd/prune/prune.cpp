// mailroom prune: counts old tokens and records, asks, and removes them.

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/status/status_sizes.hpp"
#include "cmd/terminal/context.hpp"
#include "cmd/terminal/progress_bar.hpp"
#include "cmd/terminal/text_table.hpp"
#include "db/search_path.hpp"
#include "process/stop_signal.hpp"
#include "prune/pruner.hpp"

namespace mailroom::cmd {
namespace {

struct PruneOptions {
  bool dry_run = false;
  int step = 1000;
  std::optional<Milliseconds> pause = Milliseconds{0};
  std::string reason;
};

/// `1,200 tokens and 12 batch records`, with the messages and the deliveries if there are any.
template <typename Counts>
std::string what_of(const Counts& counts) {
  auto text = counted(counts.tokens, "token");
  if (counts.messages > 0) text += ", " + counted(counts.messages, "message");
  if (counts.contents > 0) text += fmt::format(", the content of {}", counted(counts.contents, "message"));
  if (counts.bounces > 0) text += ", " + counted(counts.bounces, "bounce record");
  const auto batches = counted(counts.batches, "batch record");
  if (counts.deliveries == 0) return fmt::format("{} and {}", text, batches);
  return fmt::format("{}, {} and {}", text, batches, counted(counts.deliveries, "delivery record"));
}

using Work = std::function<prune::PruneSummary(const prune::PruneObserver&)>;

/// Runs `work` with a progress bar until it is done or a signal arrives, with `pause` between its steps.
prune::PruneSummary under_way(Context& context, const std::string& verb, Milliseconds pause,
                              const Work& work) {
  process::StopSignal stop;
  ProgressBar bar(context.err(), context.global().quiet, context.colour_on(context.err()));
  return work([&](const prune::PruneProgress& progress) {
    bar.show(progress.fraction, what_of(progress) + " " + verb);
    if (pause > Milliseconds::zero() && progress.fraction < 1) stop.sleep_for(pause);
    return !stop.requested();
  });
}

/// What nobody can prove afterwards.
std::string lost_evidence(const prune::PruneSummary& summary) {
  if (!summary.dry_run || summary.tokens + summary.messages + summary.deliveries == 0) return "";
  return "With these rows goes the evidence of their mails: to whom, when, what the relay answered. audit and message show know "
         "nothing of them afterwards. To free space and keep the evidence, lower messages.retention, which removes content "
         "alone, and leave audit.retention (--older-than) as it is.\n";
}

/// Counts and asks, unless --yes is given, then removes. A dry run only counts.
prune::PruneSummary prune(const PruneOptions& options, Context& context, db::Connection& connection) {
  const auto [older_than, contents] = prune::prune_ages(context.settings());
  prune::Pruner pruner(connection, prune::prune_ages(context.settings()), options.step);
  if (options.dry_run || !context.global().yes) {
    auto summary =
        under_way(context, "to remove", {}, [&](const auto& go_on) { return pruner.count(go_on); });
    summary.dry_run = options.dry_run || summary.stopped;
    if (summary.dry_run || summary.empty()) return summary;
    const auto ages = summary.contents == 0 ? format_duration(older_than)
                                            : fmt::format("{}, content than {}", format_duration(older_than),
                                                          format_duration(contents));
    summary.dry_run = true;
    context.err().write(folded(lost_evidence(summary), context.err().width()));
    confirm(context, fmt::format("remove {} older than {}?", what_of(summary), ages));
  }
  const auto author = queue::operator_author(connection, options.reason);
  return under_way(context, "removed", *options.pause,
                   [&](const auto& go_on) { return pruner.remove(author, go_on); });
}

std::string moment_of(const prune::PruneSummary& summary) {
  return fmt::format("{} ({} ago)", moment_text(summary.before), format_duration(summary.older_than));
}

std::string render_counts(const prune::PruneSummary& summary) {
  if (summary.empty() && (summary.stopped || summary.skipped + summary.referred > 0))
    return "nothing removed\n";
  if (summary.empty()) return fmt::format("nothing to remove that ended before {}\n", moment_of(summary));
  TextTable table({{""}, {"", TextTable::Align::right}});
  table.add({"tokens", with_thousands(summary.tokens)});
  if (summary.messages > 0) table.add({"messages", with_thousands(summary.messages)});
  if (summary.contents > 0) table.add({"contents of messages", with_thousands(summary.contents)});
  table.add({"batch records", with_thousands(summary.batches)});
  if (summary.deliveries > 0) table.add({"delivery records", with_thousands(summary.deliveries)});
  if (summary.bounces > 0) table.add({"bounce records", with_thousands(summary.bounces)});
  return fmt::format("{} what ended before {}:\n{}", summary.dry_run ? "would remove" : "removed",
                     moment_of(summary), table.render(80, 2));
}

std::string text_of_pruning(const prune::PruneSummary& summary, const std::string& free_space) {
  auto text = render_counts(summary) + lost_evidence(summary) + free_space;
  if (summary.skipped > 0) {
    text += fmt::format("left for the next run: {} that other sessions were changing\n",
                        counted(summary.skipped, "row"));
  }
  if (summary.referred > 0) {
    text += fmt::format(
        "left: {} that rows of the application refer to ({}); declare such a key ON DELETE SET NULL\n",
        counted(summary.referred, "row"), shown_text(summary.referred_by));
  }
  if (const auto& held = summary.held_back) {
    text += fmt::format("held back: what ended above token {}, until the cursor of queue {} has passed it\n",
                        with_thousands(held->cursor), shown_text(held->queue));
  }
  if (summary.keeps_contents)
    text +=
        "left: the content of messages, which this role may not remove (docs/security.md has the right)\n";
  if (summary.stopped) text += "stopped by a signal before the end\n";
  return text;
}

std::string pruned_json(const prune::PruneSummary& summary) {
  nlohmann::ordered_json object{{"dry_run", summary.dry_run},
                                {"older_than", format_duration(summary.older_than)},
                                {"before", moment_text(summary.before)},
                                {"tokens", summary.tokens},
                                {"messages", summary.messages},
                                {"contents", summary.contents},
                                {"batches", summary.batches},
                                {"deliveries", summary.deliveries},
                                {"bounces", summary.bounces},
                                {"skipped", summary.skipped},
                                {"referred", summary.referred},
                                {"held_back", nullptr},
                                {"stopped", summary.stopped}};
  if (const auto& held = summary.held_back)
    object["held_back"] = {{"queue", held->queue}, {"cursor", held->cursor}};
  return json_text(object) + "\n";
}

ExitCode run_prune(const PruneOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("prune");
  const auto waits = context.watch_waits(*connection, "prune");
  context.require_own_session(*connection, "prune");
  Prunable pruned;
  const auto sizes = connection->transact([&](pqxx::work& transaction) {
    pruned.old_attachments =
        status::count_old_attachments(transaction, prune::prune_ages(context.settings()).contents);
    return status::read_table_sizes(transaction);
  });
  pruned.summary = prune(options, context, *connection);
  const auto& summary = pruned.summary;
  if (context.global().output == OutputFormat::json) {
    context.print(pruned_json(summary));
  } else {
    context.say(text_of_pruning(
        summary, summary.dry_run ? "" : render_free_space(sizes, pruned, db::quoted_schema(*connection))));
  }
  return ExitCode::done;
}

Run add_prune(CommandSyntax& syntax) {
  auto options = std::make_shared<PruneOptions>();
  syntax.flag("--dry-run", options->dry_run, "count what would be removed, and change nothing");
  syntax.number<int>("--step N", options->step, {1, 100'000}, "remove at most N rows per transaction [1000]");
  syntax.duration("--pause DURATION", options->pause, {Milliseconds{0}, std::chrono::hours(1)},
                  "pause this long between transactions [0s]");
  syntax.text("--reason TEXT", options->reason, "record TEXT as the reason");
  return [options](Context& context) { return run_prune(*options, context); };
}

}  // namespace

const Command prune_command{
    "prune",
    "remove tokens long expired or consumed, old messages, and old records of batches and deliveries",
    "Examples:\n"
    "  mailroom prune --dry-run                      count what would be removed\n"
    "  mailroom prune                                count, ask, and remove\n"
    "  mailroom prune --yes --older-than 90d         for a daily timer\n"
    "\n"
    "Can run beside collectors; a signal stops it after the current step. It keeps\n"
    "a token that is due, above the cursor of a queue, or in an open batch; a\n"
    "message that is scheduled or has a token; a batch record that is open, the\n"
    "newest of its queue, or of a token that is kept; accounts, and the records of\n"
    "operations and of the schema.\n",
    add_prune,
    "Removes tokens that expired or were consumed longer ago than audit.retention, messages whose tokens are gone or "
    "that were cancelled or replaced before they had any, and the records of batches and deliveries that no token "
    "needs any more. It works in steps of --step rows, each a short transaction that takes "
    "row locks only and never waits for one. It records what it removed; --dry-run counts exactly what "
    "would be removed.\n\n"
    "Removed rows leave space in the files of the tables, which new rows fill; the files do not get smaller. After the removal "
    "of much it names these tables, and prints the VACUUM FULL that gives the space back to the disk and locks them meanwhile; mailroom status --sizes "
    "shows what the tables take."};

}  // namespace mailroom::cmd
