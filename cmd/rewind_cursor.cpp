#include <fmt/format.h>

#include "accounts/account_lookup.hpp"
#include "base/duration.hpp"
#include "base/moment.hpp"
#include "base/text.hpp"
#include "base/who.hpp"
#include "cmd/commands.hpp"
#include "cmd/confirm.hpp"
#include "cmd/rewind_report.hpp"

namespace mailroom {
namespace {

struct RewindOptions {
  std::optional<std::int64_t> to_id;
  std::string to_time;
  std::string by;
  bool to_start = false;
  bool to_end = false;
  std::string action;
  std::vector<std::string> accounts;
  std::string extend;
  std::int64_t max_replay = 1000;
  std::string reason;
  bool dry_run = false;
};

std::int64_t seconds_of(const std::string& flag, const std::string& text) {
  const auto duration = parse_duration(text);
  if (duration && *duration >= std::chrono::seconds(1)) {
    return std::chrono::floor<std::chrono::seconds>(*duration).count();
  }
  throw Error(ExitCode::usage,
              fmt::format("{} is '{}', and must be a duration of a second or more", flag, text),
              "for example 10m, 1h30m or 2d");
}

std::int64_t moment_of(const std::string& text, std::int64_t now) {
  const auto moment = parse_moment(text, now);
  if (moment) return *moment;
  throw Error(ExitCode::usage, fmt::format("--to-time is '{}', and must be a time", text),
              "for example 2026-11-21T09:30 (UTC), 2026-11-21T09:30+02:00, or 10m for ten minutes ago");
}

RewindTarget target_of(const RewindOptions& options, std::int64_t now) {
  const int given = (options.to_id ? 1 : 0) + (options.to_time.empty() ? 0 : 1) +
                    (options.by.empty() ? 0 : 1) + (options.to_start ? 1 : 0) + (options.to_end ? 1 : 0);
  if (given != 1) {
    throw Error(ExitCode::usage,
                given == 0 ? "where to is not said"
                           : "only one of --to-id, --to-time, --by, --to-start and --to-end can be given",
                given == 0 ? "give one of --to-id N, --to-time TIME, --by DURATION, --to-start, --to-end"
                           : "--dry-run shows what one would do");
  }
  if (options.to_id) return {RewindTarget::Kind::id, *options.to_id};
  if (!options.to_time.empty()) return {RewindTarget::Kind::time, moment_of(options.to_time, now)};
  if (!options.by.empty()) return {RewindTarget::Kind::time, now - seconds_of("--by", options.by)};
  return {options.to_start ? RewindTarget::Kind::start : RewindTarget::Kind::end, 0};
}

/// Everything of the request that needs no database; `now` is what times count back from.
RewindRequest request_of(const RewindOptions& options, const std::string& queue, std::int64_t now) {
  return {.queue = queue,
          .target = target_of(options, now),
          .filter = {.action = options.action, .accounts = {}},
          .extend_seconds = options.extend.empty() ? 0 : seconds_of("--extend", options.extend),
          .max_replay = options.max_replay};
}

void refuse_above_limit(const RewindRequest& request, const RewindPlan& plan) {
  if (plan.replayed() <= request.max_replay) return;
  throw Error(ExitCode::declined,
              fmt::format("this would hand on {} tokens, and no more than {} are allowed",
                          with_thousands(plan.replayed()), with_thousands(request.max_replay)),
              fmt::format("--max-replay {} allows it; --action and --account narrow it", plan.replayed()));
}

ExitCode run_rewind(const RewindOptions& options, Context& context) {
  const auto& queue = context.settings().queue;
  request_of(options, queue, 0);  // what is not well said is refused before anything is connected to
  const auto connection = context.connect_to_schema("rewind-cursor");
  auto request = request_of(options, queue, connection->server_time());
  for (const auto& account : find_accounts(*connection, options.accounts))
    request.filter.accounts.push_back(account.id);
  const auto plan = plan_rewind(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.out().write(render_rewind_plan(request, plan));
  if (options.dry_run || plan.changes_nothing()) {
    context.out().write(json              ? rewind_json(request, plan, std::nullopt)
                        : options.dry_run ? "dry run: nothing has been done\n"
                                          : "nothing to do\n");
    return ExitCode::done;
  }
  refuse_above_limit(request, plan);
  confirm(context, rewind_question(request, plan));
  const auto replayed =
      carry_out_rewind(*connection, request, plan, {.actor = operator_name(), .reason = options.reason},
                       context.settings().channel);
  context.out().write(json ? rewind_json(request, plan, replayed) : render_rewind_result(plan, replayed));
  return ExitCode::done;
}

void add_targets(CLI::App& app, const std::shared_ptr<RewindOptions>& options) {
  app.add_option_function<std::int64_t>(
         "--to-id", [options](const std::int64_t& id) { options->to_id = id; },
         "set the cursor to N: tokens with larger ids are handed on")
      ->check(whole_number(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->option_text("N");
  app.add_option("--to-time", options->to_time, "hand on what was created since: a UTC time, or how long ago")
      ->option_text("TIME");
  app.add_option("--by", options->by, "hand on what was created in the last DURATION")
      ->option_text("DURATION");
  app.add_flag("--to-start", options->to_start, "hand on everything that is due");
  app.add_flag("--to-end", options->to_end, "pass by all that waits");
}

Run add_rewind(CLI::App& app, Overrides& overrides) {
  auto options = std::make_shared<RewindOptions>();
  add_targets(app, options);
  add_action(app, options->action)
      ->description("only tokens of this action, activation or recovery; the cursor stays");
  app.add_option("--account", options->accounts,
                 "only tokens of this account, by id, email or login; may be repeated; the cursor stays")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->option_text("ACCOUNT");
  app.add_option("--extend", options->extend, "give expired tokens so long from now, and hand them on")
      ->option_text("DURATION");
  app.add_option("--max-replay", options->max_replay, "refuse to hand on more tokens than this [1000]")
      ->check(whole_number(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->option_text("N");
  app.add_option("--reason", options->reason, "why, for the record")->option_text("TEXT");
  app.add_flag("--dry-run", options->dry_run, "show the plan and stop");
  add_setting(app, overrides, "--queue", "collect.queue", "the queue, a row of jobs [mailroom]");
  return [options](Context& context) { return run_rewind(*options, context); };
}

}  // namespace

const Command rewind_cursor_command{
    "rewind-cursor", "hand on tokens again: move the cursor, after showing what that does",
    "Examples:\n"
    "  mailroom rewind-cursor --by 10m --dry-run    what would go out again\n"
    "  mailroom rewind-cursor --by 10m --action recovery --reason 'sender was down'\n"
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
    "new expiry. With --action or --account only matching tokens are handed on, and the cursor stays where "
    "it "
    "is. More than --max-replay tokens are refused, since a replay mails people again. Who did it and why is "
    "on record, and mailroom audit shows it."};

}  // namespace mailroom
