#include <fmt/format.h>

#include "accounts/account_lookup.hpp"
#include "base/duration.hpp"
#include "base/moment.hpp"
#include "base/text.hpp"
#include "base/who.hpp"
#include "cmd/commands.hpp"
#include "cmd/confirm.hpp"
#include "cmd/fix_sequence.hpp"
#include "cmd/rewind_report.hpp"

namespace mailroom {
namespace {

/// Tokens are created and expire at whole seconds.
constexpr Range<Milliseconds> duration_range{std::chrono::seconds(1), std::chrono::hours(24 * 365 * 100)};

struct RewindOptions {
  std::optional<std::int64_t> to_id;
  std::string to_time;
  std::optional<Milliseconds> by;
  bool to_start = false;
  bool to_end = false;
  bool fix_sequence = false;
  std::string until;
  std::string action;
  std::vector<std::string> accounts;
  std::optional<Milliseconds> extend;
  std::int64_t max_replay = 1000;
  std::string reason;
  bool dry_run = false;
};

std::int64_t seconds_of(Milliseconds duration) {
  return std::chrono::floor<std::chrono::seconds>(duration).count();
}

std::int64_t moment_of(const std::string& flag, const std::string& text, std::int64_t now) {
  const auto moment = parse_moment(text, now);
  if (moment) return *moment;
  throw Error(ExitCode::usage, fmt::format("{} is '{}', and must be a time", flag, text),
              "for example 2026-11-21T09:30 (UTC), 2026-11-21T09:30+02:00, or 10m for ten minutes ago");
}

RewindTarget target_of(const RewindOptions& options, std::int64_t now) {
  const int given = (options.to_id ? 1 : 0) + (options.to_time.empty() ? 0 : 1) + (options.by ? 1 : 0) +
                    (options.to_start ? 1 : 0) + (options.to_end ? 1 : 0);
  if (given != 1) {
    throw Error(ExitCode::usage,
                given == 0 ? "where to is not said"
                           : "only one of --to-id, --to-time, --by, --to-start and --to-end can be given",
                given == 0 ? "give one of --to-id N, --to-time TIME, --by DURATION, --to-start, --to-end"
                           : "--dry-run shows what one would do");
  }
  if (options.to_id) return {RewindTarget::Kind::id, *options.to_id};
  if (!options.to_time.empty())
    return {RewindTarget::Kind::time, moment_of("--to-time", options.to_time, now)};
  if (options.by) return {RewindTarget::Kind::time, now - seconds_of(*options.by)};
  return {options.to_start ? RewindTarget::Kind::start : RewindTarget::Kind::end, 0};
}

std::optional<std::int64_t> end_of(const RewindOptions& options, std::int64_t now) {
  if (options.until.empty()) return std::nullopt;
  if (options.to_end) {
    throw Error(ExitCode::usage, "--until bounds a replay, and --to-end hands on nothing again",
                "--by, --to-time, --to-id and --to-start say where a replay begins");
  }
  return moment_of("--until", options.until, now);
}

/// Everything of the request that needs no database; `now` is what times count back from.
RewindRequest request_of(const RewindOptions& options, const std::string& queue, std::int64_t now) {
  return {.queue = queue,
          .target = target_of(options, now),
          .filter = {.action = options.action, .accounts = {}, .until = end_of(options, now)},
          .extend_seconds = options.extend ? seconds_of(*options.extend) : 0,
          .max_replay = options.max_replay};
}

void refuse_above_limit(const RewindRequest& request, const RewindPlan& plan) {
  if (plan.replayed() <= request.max_replay) return;
  throw Error(
      ExitCode::declined,
      fmt::format("this would hand on {} tokens, and no more than {} are allowed",
                  with_thousands(plan.replayed()), with_thousands(request.max_replay)),
      fmt::format("--max-replay {} allows it; --action, --account and --until narrow it", plan.replayed()));
}

/// It is the same for all queues, and leads nowhere else.
FixSequenceOptions fix_sequence_options(const RewindOptions& options) {
  const bool has_target =
      options.to_id || !options.to_time.empty() || options.by || options.to_start || options.to_end;
  if (has_target || !options.until.empty() || !options.action.empty() || !options.accounts.empty()) {
    throw Error(ExitCode::usage, "--fix-sequence goes with no target, and cannot be narrowed",
                "mailroom rewind-cursor --fix-sequence --dry-run shows what it would do");
  }
  return {.extend_seconds = options.extend ? seconds_of(*options.extend) : 0,
          .reason = options.reason,
          .dry_run = options.dry_run};
}

ExitCode run_rewind(const RewindOptions& options, Context& context) {
  if (options.fix_sequence) return run_fix_sequence(fix_sequence_options(options), context);
  const auto& queue = context.settings().queue;
  request_of(options, queue, 0);  // what is not well said is refused before anything is connected to
  const auto connection = context.connect_to_schema("rewind-cursor");
  auto request = request_of(options, queue, connection->server_time());
  for (const auto& account : find_accounts(*connection, options.accounts))
    request.filter.accounts.push_back(account.id);
  const auto plan = plan_rewind(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_rewind_plan(request, plan));
  if (options.dry_run || plan.changes_nothing()) {
    context.print(json              ? rewind_json(request, plan, std::nullopt)
                  : options.dry_run ? "dry run: nothing has been done\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  refuse_above_limit(request, plan);
  confirm(context, rewind_question(request, plan));
  const auto replayed =
      carry_out_rewind(*connection, request, plan, {.actor = operator_name(), .reason = options.reason},
                       context.settings().channel);
  context.print(json ? rewind_json(request, plan, replayed) : render_rewind_result(plan, replayed));
  return ExitCode::done;
}

void add_targets(CommandSyntax& syntax, RewindOptions& options) {
  syntax.number<std::int64_t>("--to-id N", options.to_id, {0},
                              "set the cursor to N: tokens with larger ids are handed on");
  syntax.text("--to-time TIME", options.to_time,
              "hand on what was created since: a UTC time, or how long ago");
  syntax.duration("--by DURATION", options.by, duration_range,
                  "hand on what was created in the last DURATION");
  syntax.flag("--to-start", options.to_start, "hand on everything that is due");
  syntax.flag("--to-end", options.to_end, "pass by all that waits");
  syntax.flag("--fix-sequence", options.fix_sequence,
              "put the sequence of tokens ahead of every cursor again");
  syntax.text("--until TIME", options.until, "only tokens created before: a time as above; the cursor stays");
}

Run add_rewind(CommandSyntax& syntax) {
  auto options = std::make_shared<RewindOptions>();
  add_targets(syntax, *options);
  syntax.action(options->action, "only tokens of this action, activation or recovery; the cursor stays");
  syntax.texts("--account ACCOUNT", options->accounts,
               "only tokens of this account, by id, email or login; may be repeated; the cursor stays");
  syntax.duration("--extend DURATION", options->extend, duration_range,
                  "give expired tokens so long from now, and hand them on");
  syntax.number<std::int64_t>("--max-replay N", options->max_replay, {0},
                              "refuse to hand on more tokens than this [1000]");
  syntax.text("--reason TEXT", options->reason, "why, for the record");
  syntax.flag("--dry-run", options->dry_run, "show the plan and stop");
  syntax.setting("--queue NAME", "collect.queue", "the queue, a row of jobs [mailroom]");
  return [options](Context& context) { return run_rewind(*options, context); };
}

}  // namespace

const Command rewind_cursor_command{
    "rewind-cursor", "hand on tokens again: move the cursor, after showing what that does",
    "Examples:\n"
    "  mailroom rewind-cursor --by 10m --dry-run    what would go out again\n"
    "  mailroom rewind-cursor --by 2h --until 110m  ten minutes of two hours ago\n"
    "  mailroom rewind-cursor --by 2h --extend 15m --max-replay 5000\n",
    add_rewind,
    "Hands on tokens again by moving the cursor back, or passes tokens by by moving it forward. The plan "
    "comes "
    "first: the cursor before and after, and how many tokens between are deliverable, expired, consumed or "
    "of "
    "an account in the wrong state, and how many of each were emitted before. Then it asks, or needs --yes. "
    "Collectors may run: they wake and hand on what lies above the cursor.\n\n"
    "A token lives for 15 minutes, so most of an older range has expired; --extend gives the unconsumed ones "
    "a "
    "new expiry. With --action, --account or --until only matching tokens are handed on, and the cursor "
    "stays "
    "where it is: --to-time 10:00 --until 10:10, each with its date, is what was created in those ten "
    "minutes, "
    "whatever has gone out since. More than --max-replay tokens are refused, since a replay mails people "
    "again. Who did it and why is "
    "on record, and mailroom audit shows it.\n\n"
    "--fix-sequence is for a sequence of tokens that stands behind a cursor: tokens were truncated or "
    "restored, or the sequence was set back. Every claim fails then. It sets the sequence ahead of all "
    "cursors "
    "and tokens, so that no id comes again, leaves the cursors where they are, and emits what was missed in "
    "all queues: the tokens that were made after the cursor had passed their ids. What a batch has emitted "
    "is "
    "not emitted again. --max-replay does not count for it."};

}  // namespace mailroom
