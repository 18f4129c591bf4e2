// mailroom revoke: shows which tokens would end, asks, and ends them before their time.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/json.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/selection/named_tokens.hpp"
#include "reconcile/reconciliation.hpp"
#include "replay/revocation.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

struct RevokeOptions {
  NamedTokensOptions tokens;
  bool all = false;
  std::string reason;
  bool dry_run = false;
};

void check_options(const RevokeOptions& options) {
  if (options.tokens.empty() != options.all) {
    throw Error(
        ExitCode::usage, options.all ? "--all takes no NAME and no selector" : "no token is named",
        options.all
            ? "omit --all to end only what is named"
            : "name an account, token:N or batch:N, give a selector such as --action recovery, or --all");
  }
  check_named_tokens(options.tokens);
}

replay::RevocationRequest request_of(db::Connection& connection, const RevokeOptions& options,
                                     const config::Settings& settings) {
  auto asked = read_named_tokens(connection, options.tokens).selection;
  // The link of any mail must end, not only that of the newest.
  const auto keys = std::exchange(asked.keys, {});
  replay::RevocationRequest request{.selection = asked,
                                    .asked = asked,
                                    .queues = status::shown_queues(connection, settings),
                                    .only_taken = status::names_queues(settings),
                                    .keys = keys};
  if (asked.outcomes.empty()) return request;
  std::vector<std::int64_t> tokens;
  for (const auto& queue : request.queues) {
    const auto chosen = reconcile::resolve_outcomes(connection, queue, asked);
    for (const auto& range : *chosen.tokens) {
      for (auto id = range.first; id < range.end; ++id)
        tokens.push_back(id);
    }
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  request.selection.outcomes.clear();
  request.selection.tokens = selection::to_id_ranges(tokens);
  return request;
}

std::string plural(std::int64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", with_thousands(count), count == 1 ? one : several);
}

/// `2 tokens of 1 account`; tokens of messages may have none.
std::string revoked_text(const replay::RevocationPlan& plan) {
  const auto tokens = counted(plan.live, "token");
  return plan.accounts == 0 ? tokens : fmt::format("{} of {}", tokens, counted(plan.accounts, "account"));
}

std::string render_plan(const replay::RevocationPlan& plan, const std::vector<MailedToken>& mailed) {
  auto text = render_mailed(mailed, 80);
  if (plan.live == 0) {
    text += "No token would end.\n";
  } else {
    text += fmt::format("{} would end now, for good: {} refused from then on.\n", revoked_text(plan),
                        plan.live == 1 ? "its link and its code are" : "their links and codes are");
  }
  if (plan.live > 0)
    text +=
        "None of them can be sent again: mailroom resend refuses them, and the application must request new ones.\n";
  if (plan.waiting > 0)
    text += plural(plan.waiting, "of them waits, and is never mailed.\n",
                   "of them wait, and are never mailed.\n");
  if (plan.leased > 0)
    text += plural(plan.leased, "of them is in a batch now: its mail may still leave.\n",
                   "of them are in a batch now: their mails may still leave.\n");
  if (plan.consumed > 0)
    text += plural(plan.consumed, "more was consumed before, which stays as it is.\n",
                   "more were consumed before, which stays as it is.\n");
  if (plan.expired > 0) text += plural(plan.expired, "more has ended before.\n", "more have ended before.\n");
  return text;
}

std::string revocation_json(const replay::RevocationPlan& plan, std::optional<std::int64_t> revoked,
                            const std::vector<MailedToken>& mailed) {
  nlohmann::ordered_json object{{"tokens", plan.live},
                                {"accounts", plan.accounts},
                                {"waiting", plan.waiting},
                                {"leased", plan.leased},
                                {"consumed", plan.consumed},
                                {"expired", plan.expired},
                                {"recipients", mailed_json(mailed)},
                                {"carried_out", revoked.has_value()},
                                {"revoked", nullptr}};
  if (revoked) object["revoked"] = *revoked;
  return json_text(object) + "\n";
}

/// Throws if a name or a key has no token; that selectors find none, or that all have ended, is no mistake.
void refuse_nothing(const RevokeOptions& options, const replay::RevocationPlan& plan) {
  if (options.tokens.names.empty() && options.tokens.selectors.typed.keys.empty()) return;
  if (plan.live + plan.consumed + plan.expired > 0) return;
  throw Error(
      ExitCode::unusable, "no token matches",
      "mailroom audit NAME shows the tokens of an account, and batch:N those of a batch with its key");
}

ExitCode run_revoke(const RevokeOptions& options, Context& context) {
  check_options(options);
  const auto connection = context.connect_to_schema("revoke");
  const auto waits = context.watch_waits(*connection, "revoke");
  const auto request = request_of(*connection, options, context.settings());
  const auto plan = replay::plan_revocation(*connection, request);
  refuse_nothing(options, plan);
  const bool json = context.global().output == OutputFormat::json;
  const auto mailed = mailed_tokens(*connection, plan.newest);
  if (!json) context.say(render_plan(plan, mailed));
  if (!json && plan.live + plan.consumed + plan.expired == 0)
    context.say(no_match_hint(options.tokens.selectors));
  if (options.dry_run || plan.live == 0) {
    context.print(json              ? revocation_json(plan, std::nullopt, mailed)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  confirm(context, fmt::format("end {} now?", revoked_text(plan)));
  const auto revoked =
      replay::carry_out_revocation(*connection, request, queue::operator_author(*connection, options.reason));
  context.print(json ? revocation_json(plan, revoked, mailed)
                     : fmt::format("done: {} ended\n", counted(revoked, "token")));
  return ExitCode::done;
}

Run add_revoke(CommandSyntax& syntax) {
  auto options = std::make_shared<RevokeOptions>();
  add_named_tokens(syntax, options->tokens, "end");
  syntax.flag("--all", options->all, "end every token");
  syntax.text("--reason TEXT", options->reason, "record TEXT as the reason");
  syntax.flag("--dry-run", options->dry_run, "show the plan and stop");
  return [options](Context& context) { return run_revoke(*options, context); };
}

}  // namespace

const Command revoke_command{
    "revoke", "end tokens before they expire; show the plan first",
    "Examples:\n"
    "  mailroom revoke user1@mail.example --reason 'mailbox taken over'\n"
    "  mailroom revoke --action recovery --since 1d --dry-run    how many would end\n"
    "  mailroom revoke --all --reason 'links were published'\n",
    add_revoke,
    "Ends tokens that are neither consumed nor expired: they expire now. Whoever redeems one by the statements of "
    "docs/redeeming.md is refused at once, and mailroom verify says that it has expired. One that waits is skipped as expired, and "
    "never mailed; a mail that is just being sent may still leave, with a link that no longer works. NAME is an account by "
    "id, email or login, batch:N, token:N, message:N, or a token as it was mailed; without such an account it may be the address or the "
    "reference of a message, of several only with --since or --until. Selectors choose by action, outcome, code, consumer, key and time; "
    "--key ends what any mail of the token was signed with, not only its newest. It first shows the plan, with the addresses if the tokens are 10 at most, then asks, or requires --yes.\n\n"
    "It cannot be undone: no --extend revives a revoked token, and mailroom resend refuses it. Have the application request new ones. "
    "After a signing key leaked, revoke nothing: write a new key into the file of signing.key_file, and reload the consumers and "
    "whatever verifies (kill -HUP). No link of the old key verifies then. mailroom resend --since 1d mails new ones.\n\nAccounts keep their "
    "status: mailroom suspend stops an account itself. The actor and the reason are recorded; mailroom audit shows them."};

}  // namespace mailroom::cmd
