// mailroom rewind-cursor: shows a plan, asks, and emits tokens again or skips them.

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/rewind_cursor/rewind_report.hpp"
#include "cmd/terminal/context.hpp"

namespace mailroom::cmd {
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
  std::optional<Milliseconds> extend = Milliseconds{0};
  std::int64_t max_replay = 1000;
  std::string reason;
  bool dry_run = false;
};

std::chrono::seconds seconds_of(Milliseconds duration) {
  return std::chrono::floor<std::chrono::seconds>(duration);
}

Moment moment_of(const std::string& flag, const std::string& text, Moment now) {
  const auto moment = parse_moment(text, now);
  if (moment) return *moment;
  throw Error(ExitCode::usage, fmt::format("{} is '{}', and must be a time", flag, text),
              "for example 2026-11-21T09:30 (UTC), 2026-11-21T09:30+02:00, or 10m for ten minutes ago");
}

replay::RewindTarget target_of(const RewindOptions& options, Moment now) {
  const int given = (options.to_id ? 1 : 0) + (options.to_time.empty() ? 0 : 1) + (options.by ? 1 : 0) +
                    (options.to_start ? 1 : 0) + (options.to_end ? 1 : 0);
  if (given != 1) {
    throw Error(ExitCode::usage,
                given == 0 ? "no target is given"
                           : "only one of --to-id, --to-time, --by, --to-start and --to-end can be given",
                given == 0 ? "give one of --to-id N, --to-time TIME, --by DURATION, --to-start, --to-end"
                           : "give one of them; --dry-run shows what it would do");
  }
  if (options.to_id) return {.kind = replay::RewindTarget::Kind::id, .id = *options.to_id};
  if (!options.to_time.empty())
    return {.kind = replay::RewindTarget::Kind::time, .time = moment_of("--to-time", options.to_time, now)};
  if (options.by) return {.kind = replay::RewindTarget::Kind::time, .time = now - seconds_of(*options.by)};
  return {.kind = options.to_start ? replay::RewindTarget::Kind::start : replay::RewindTarget::Kind::end};
}

/// The part of the request that needs no database; relative times count back from `now`. Throws Error(usage).
replay::RewindRequest request_of(const RewindOptions& options, const std::string& queue, Moment now) {
  return {.queue = queue,
          .target = target_of(options, now),
          .extension = seconds_of(*options.extend),
          .max_replay = options.max_replay};
}

void refuse_above_limit(const replay::RewindRequest& request, const replay::RewindPlan& plan) {
  if (plan.replayed() <= request.max_replay) return;
  throw Error(ExitCode::declined,
              fmt::format("this would emit {} tokens, and no more than {} are allowed",
                          with_thousands(plan.replayed()), with_thousands(request.max_replay)),
              fmt::format("--max-replay {} allows it; mailroom resend chooses single tokens by selectors",
                          plan.replayed()));
}

/// Throws Error(usage) for a target: --fix-sequence applies to all queues and takes none.
void refuse_target(const RewindOptions& options) {
  const bool has_target =
      options.to_id || !options.to_time.empty() || options.by || options.to_start || options.to_end;
  if (has_target) {
    throw Error(ExitCode::usage, "--fix-sequence takes no target",
                "mailroom rewind-cursor --fix-sequence --dry-run shows what it would do");
  }
}

ExitCode run_rewind(const RewindOptions& options, Context& context) {
  if (options.fix_sequence) {
    refuse_target(options);
    return run_fix_sequence(seconds_of(*options.extend), options.reason, options.dry_run, context);
  }
  const auto& queue = config::only_queue(context.settings());
  request_of(options, queue, {});  // reports usage errors before connecting
  const auto connection = context.connect_to_schema("rewind-cursor");
  const auto waits = context.watch_waits(*connection, "rewind-cursor");
  const auto request = request_of(options, queue, connection->server_time());
  const auto plan = replay::plan_rewind(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_rewind_plan(request, plan));
  if (options.dry_run || plan.changes_nothing()) {
    context.print(json              ? rewind_json(request, plan, std::nullopt)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  refuse_above_limit(request, plan);
  confirm(context, rewind_question(request, plan));
  const auto replayed = replay::carry_out_rewind(*connection, request, plan,
                                                 queue::operator_author(*connection, options.reason),
                                                 context.settings().collect.channel);
  context.print(json ? rewind_json(request, plan, replayed) : render_rewind_result(plan, replayed));
  return ExitCode::done;
}

void add_targets(CommandSyntax& syntax, RewindOptions& options) {
  syntax.number<std::int64_t>("--to-id N", options.to_id, {0},
                              "set the cursor to N, and emit tokens with larger ids");
  syntax.text("--to-time TIME", options.to_time, "emit tokens created since TIME: UTC, or how long ago");
  syntax.duration("--by DURATION", options.by, duration_range, "emit tokens created in the last DURATION");
  syntax.flag("--to-start", options.to_start, "emit all due tokens");
  syntax.flag("--to-end", options.to_end, "skip all waiting tokens");
  syntax.flag("--fix-sequence", options.fix_sequence,
              "set every sequence of mailroom ahead of its table and cursors");
}

Run add_rewind(CommandSyntax& syntax) {
  auto options = std::make_shared<RewindOptions>();
  add_targets(syntax, *options);
  syntax.duration("--extend DURATION", options->extend, duration_range,
                  "let expired tokens expire DURATION from now, and emit them");
  syntax.number<std::int64_t>("--max-replay N", options->max_replay, {0},
                              "refuse to emit more than N tokens [1000]");
  syntax.text("--reason TEXT", options->reason, "record TEXT as the reason");
  syntax.flag("--dry-run", options->dry_run, "show the plan and stop");
  return [options](Context& context) { return run_rewind(*options, context); };
}

}  // namespace

const Command rewind_cursor_command{
    "rewind-cursor", "move the cursor of a queue back or forward; show the plan first",
    "Examples:\n"
    "  mailroom rewind-cursor --by 10m --dry-run    show what would be emitted\n"
    "  mailroom rewind-cursor --by 2h --extend 15m --max-replay 5000\n"
    "  mailroom rewind-cursor --to-end    skip everything that waits\n"
    "\n"
    "mailroom resend sends named tokens again, or those of a period; the cursor stays.\n",
    add_rewind,
    "Emits all tokens from a point on again by moving the cursor back, or skips tokens by moving it forward. It first shows "
    "the plan: the cursor before and after, and how many tokens in between are deliverable, expired, "
    "consumed or of an account in the wrong status, and how many of each were emitted before. Then it asks, "
    "or requires --yes. Collectors may keep running: they wake and emit the tokens above the cursor. To send "
    "single tokens, those of an account, of an outcome or of a period with an end, use mailroom resend.\n\n"
    "A token expires after 15 minutes, so most tokens of an older range have expired; --extend gives the "
    "unconsumed ones a new expiry, unless they were revoked. More than --max-replay tokens are refused, "
    "since a replay mails people again; such a mail has a Message-ID and a Date of its own, and its times count from "
    "then. The actor and the reason are recorded; mailroom audit shows "
    "them.\n\n"
    "--fix-sequence is for a token sequence that is behind a cursor: tokens were truncated or restored, or "
    "the sequence was set back. Every claim then fails. It sets the sequence ahead of all cursors and "
    "tokens, so that no id is used twice, and does not move the cursors. It emits the missed tokens of all "
    "queues, those created after the cursor had passed their ids. Tokens that a batch has emitted are not "
    "emitted again. --max-replay does not apply."};

}  // namespace mailroom::cmd
