// mailroom resend: shows who would be mailed, asks, and sends named tokens again.

#include <fmt/format.h>
#include <map>

#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/resend/resend_plan.hpp"
#include "cmd/resend/resend_report.hpp"
#include "cmd/selection/named_tokens.hpp"
#include "reconcile/reconciliation.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

/// Tokens expire at whole seconds.
constexpr Range<Milliseconds> extension_range{std::chrono::seconds(1), std::chrono::hours(24 * 365 * 100)};

struct ResendOptions {
  NamedTokensOptions tokens;
  std::optional<Milliseconds> extend = Milliseconds{0};
  std::int64_t max = 1000;
  std::string reason;
  bool dry_run = false;
};

NamedResend plan_all(db::Connection& connection, const ResendOptions& options,
                     const config::Settings& settings) {
  const auto named = read_named_tokens(connection, options.tokens);
  const auto now = replay::time_of_choice(connection);
  NamedResend resend;
  for (const auto& queue : status::shown_queues(connection, settings)) {
    replay::ResendRequest request{
        .queue = queue,
        .selection = reconcile::resolve_outcomes(connection, queue, named.selection),
        .asked = named.selection,
        .by_token = named.by_token,
        .extension = std::chrono::floor<std::chrono::seconds>(*options.extend)};
    if (!named.selection.outcomes.empty()) request.chosen_at = now;
    resend.requests.push_back(std::move(request));
    resend.plans.push_back(replay::plan_resend(connection, resend.requests.back()));
  }
  return resend;
}

/// Throws Error(usage) if two queues would send the same token.
void refuse_doubling(const std::vector<replay::ResendPlan>& plans) {
  std::map<std::int64_t, std::string> senders;
  for (const auto& plan : plans) {
    for (const auto token : plan.sent) {
      const auto [known, is_new] = senders.emplace(token, plan.queue);
      if (is_new) continue;
      throw Error(ExitCode::usage,
                  fmt::format("queues {} and {} would both send token {}", shown_text(known->second),
                              shown_text(plan.queue), token),
                  "name one of them with --queue");
    }
  }
}

void refuse_above_limit(std::int64_t sent, std::int64_t max) {
  if (sent <= max) return;
  throw Error(ExitCode::declined,
              fmt::format("this would send {} tokens, and no more than {} are allowed", with_thousands(sent),
                          with_thousands(max)),
              fmt::format("--max {} allows it; more selectors narrow it", sent));
}

/// Throws where a name, or all that matches, cannot be sent. That selectors find nobody, or only tokens that
/// wait to be sent, is no mistake.
void refuse_nothing(const ResendOptions& options, const std::vector<replay::ResendPlan>& plans) {
  const auto refusal = resend_refusal(plans);
  if (refusal && (matched_by(plans) > 0 || !options.tokens.names.empty())) throw *refusal;
}

bool changes_nothing(const std::vector<replay::ResendPlan>& plans) {
  return std::ranges::all_of(plans, [](const auto& plan) { return plan.sent.empty() && plan.revived == 0; });
}

std::string resent_text(std::int64_t sent) {
  return fmt::format("done: {} to be sent\n", counted(sent, "token"));
}

std::string question_of(std::int64_t sent) {
  return sent == 0 ? std::string("give waiting tokens a new expiry?")
                   : fmt::format("send {} again?", counted(sent, "token"));
}

ExitCode run_resend(const ResendOptions& options, Context& context) {
  if (options.tokens.empty()) {
    throw Error(
        ExitCode::usage, "nothing is named to be sent again",
        "name an account, token:N or batch:N, or give a selector such as --outcome rejected --since 2h");
  }
  check_named_tokens(options.tokens);
  const auto connection = context.connect_to_schema("resend");
  const auto waits = context.watch_waits(*connection, "resend");
  const auto resend = plan_all(*connection, options, context.settings());
  refuse_doubling(resend.plans);
  const bool json = context.global().output == OutputFormat::json;
  const auto extension = std::chrono::floor<std::chrono::seconds>(*options.extend);
  const auto mailed = mailed_tokens(*connection, sent_tokens(resend.plans));
  if (!json) context.say(render_resend_plan(resend.plans, extension, mailed));
  if (!json && matched_by(resend.plans) == 0) context.say(no_match_hint(options.tokens.selectors));
  const bool is_idle = changes_nothing(resend.plans);
  if (is_idle) refuse_nothing(options, resend.plans);
  if (is_idle || options.dry_run) {
    context.print(json              ? resend_json(resend.plans, std::nullopt, mailed)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  const auto planned = sent_by(resend.plans);
  refuse_above_limit(planned, options.max);
  confirm(context, question_of(planned));
  const auto sent = replay::carry_out_resend(*connection, resend.requests, options.max,
                                             queue::operator_author(*connection, options.reason),
                                             context.settings().collect.channel);
  context.print(json ? resend_json(resend.plans, sent, mailed) : resent_text(sent));
  return ExitCode::done;
}

Run add_resend(CommandSyntax& syntax) {
  auto options = std::make_shared<ResendOptions>();
  add_named_tokens(syntax, options->tokens, "send");
  syntax.duration("--extend DURATION", options->extend, extension_range,
                  "let expired tokens expire DURATION from now, and send them too");
  syntax.number<std::int64_t>("--max N", options->max, {0}, "refuse to send more than N tokens [1000]");
  syntax.text("--reason TEXT", options->reason, "record TEXT as the reason");
  syntax.flag("--dry-run", options->dry_run, "show the plan and stop");
  return [options](Context& context) { return run_resend(*options, context); };
}

}  // namespace

NamedResend plan_named_resend(db::Connection& connection, const std::string& name, Milliseconds extension,
                              const config::Settings& settings) {
  ResendOptions options;
  options.tokens.names = {name};
  options.extend = extension;
  check_named_tokens(options.tokens);
  auto resend = plan_all(connection, options, settings);
  refuse_doubling(resend.plans);
  if (changes_nothing(resend.plans)) refuse_nothing(options, resend.plans);
  refuse_above_limit(sent_by(resend.plans), options.max);
  resend.text = render_resend_plan(resend.plans, std::chrono::floor<std::chrono::seconds>(extension),
                                   mailed_tokens(connection, sent_tokens(resend.plans)));
  return resend;
}

std::string carry_out_named_resend(db::Connection& connection, const NamedResend& resend,
                                   const queue::OperationAuthor& author, const std::string& channel) {
  return resent_text(
      replay::carry_out_resend(connection, resend.requests, ResendOptions().max, author, channel));
}

const Command resend_command{
    "resend", "send named tokens again, each in a new mail; show the plan first",
    "Examples:\n"
    "  mailroom resend user1@mail.example --extend 15m          a new mail for one\n"
    "  mailroom resend --outcome rejected --since 2h --dry-run  what would be sent\n"
    "  mailroom resend --since 2h --until 110m --extend 15m --reason 'wrong link'\n",
    add_resend,
    "Sends tokens again that a queue has passed, whatever became of them. NAME is an account by id, email or login, batch:N, "
    "token:N, message:N, or a token as it was mailed; without such an account it may be the address or the reference of a message, of "
    "several only with --since or --until. Selectors choose by action, outcome, code, consumer, key and time. It first shows the plan: how "
    "many tokens would be sent, to whom if they are 10 at most, and how many of their recipients have a mail already, as far as the records tell. "
    "Then it asks, or requires --yes.\n\n"
    "Tokens that are consumed, revoked or of an account in the wrong status are not sent, nor are expired ones without --extend, nor "
    "those that wait to be sent anyway. Of several tokens of an account and action only the newest is sent; token:N sends an "
    "older one all the same. More than --max are refused.\n\n"
    "A mail that is sent again on purpose is a new mail: it has a Message-ID and a Date of its own, and says how long its link works "
    "from then on. Its text is made anew, of the templates that the sender read when it started or at its last SIGHUP: after a "
    "change of a template file, first systemctl reload 'mailroom-send@*', or kill -HUP PID without systemd. A message with content of "
    "its own keeps it. A retry of mailroom itself, after a deferral or a lost connection, repeats the same mail. The cursor stays, and consumers "
    "may keep running. The actor and the reason are recorded; mailroom audit shows them."};

}  // namespace mailroom::cmd
