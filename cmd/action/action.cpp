// mailroom action: lists, creates, changes and retires the kinds of mail.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cmd/action/action_report.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/context.hpp"
#include "config/parse_value.hpp"

namespace mailroom::cmd {
namespace {

constexpr Milliseconds shortest_lifetime = std::chrono::minutes(1);
constexpr Milliseconds longest_lifetime = std::chrono::hours(24 * 3660);

/// The options and operands of all commands of action. A property that is not given stays as it is.
struct ActionOptions {
  std::string name;
  std::optional<std::string> path;
  bool has_code = false;
  std::optional<std::string> account_status;
  std::optional<std::string> lifetime;
  std::optional<std::string> template_name;
  std::optional<bool> security;
  std::optional<std::string> producer;
  std::string reason;
  bool dry_run = false;
};

std::string unless_none(const std::string& text) {
  return text == "none" ? "" : text;
}

/// In whole seconds, since tokens expire at one.
std::optional<std::chrono::seconds> parse_lifetime(const std::string& text) {
  if (text == "none") return std::nullopt;
  const auto lifetime = parse_duration(text);
  if (!lifetime || *lifetime < shortest_lifetime || *lifetime > longest_lifetime ||
      *lifetime % Milliseconds(1000) != Milliseconds(0)) {
    throw Error(
        ExitCode::usage,
        fmt::format(
            "--lifetime is '{}', and must be whole seconds of a minute or more, such as 15m or 72h; or none",
            shown_text(text)));
  }
  return std::chrono::floor<std::chrono::seconds>(*lifetime);
}

queue::Action changed(queue::Action action, const ActionOptions& options) {
  if (options.path) action.path = unless_none(*options.path);
  action.has_code = action.has_code || options.has_code;
  if (options.account_status) action.account_status = unless_none(*options.account_status);
  if (options.lifetime) action.lifetime = parse_lifetime(*options.lifetime);
  if (options.template_name) action.template_name = *options.template_name;
  if (options.security) action.security = *options.security;
  if (options.producer) action.producer = unless_none(*options.producer);
  return action;
}

/// The plan, the question if there is one, the change, and its report.
ExitCode run_change(const ActionOptions& options, Context& context, db::Connection& connection,
                    const queue::ActionChange& change, const queue::QueueCatalogue& catalogue) {
  const bool json = context.global().output == OutputFormat::json;
  const bool is_nothing = !change.is_new && change.before == change.after;
  const bool stays = options.dry_run || is_nothing;
  if (!json && !is_nothing) context.say(render_change(change, catalogue));
  if (!stays) {
    if (!change.is_new && change.before.account_status != change.after.account_status)
      confirm(context, fmt::format("change whose {} tokens are due?", change.after.name));
    queue::carry_out(connection, change, queue::operator_author(connection, options.reason));
  }
  if (json) {
    auto object = change_json(change, catalogue);
    object["carried_out"] = !stays;
    context.print(json_text(object) + "\n");
  } else {
    context.print(!stays ? "done\n" : options.dry_run ? "dry run: nothing was changed\n" : "nothing to do\n");
  }
  return ExitCode::done;
}

const queue::Action& named_action(const queue::QueueCatalogue& catalogue, const std::string& name) {
  return catalogue.actions.require(name, "NAME is", ExitCode::usage);
}

ExitCode action_list(const ActionOptions& /*options*/, Context& context) {
  const auto connection = context.connect_to_schema("action");
  const auto catalogue = queue::read_queues(*connection);
  context.print(context.global().output == OutputFormat::json
                    ? json_text(action_list_json(catalogue)) + "\n"
                    : render_action_list(catalogue, context.out().width()));
  return ExitCode::done;
}

ExitCode action_show(const ActionOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("action");
  const auto catalogue = queue::read_queues(*connection);
  const auto& action = named_action(catalogue, options.name);
  context.print(context.global().output == OutputFormat::json
                    ? json_text(action_json(action, catalogue)) + "\n"
                    : render_action(action, catalogue, context.out().width()));
  return ExitCode::done;
}

ExitCode action_create(const ActionOptions& options, Context& context) {
  queue::ActionChange change{.is_new = true, .before = {.name = options.name}};
  change.after = changed(change.before, options);
  if (!options.lifetime) change.after.lifetime = queue::Actions::built_in().all().back().lifetime;
  if (change.after.template_name.empty()) change.after.template_name = options.name;
  queue::require_valid(change, queue::Actions::built_in());
  const auto connection = context.connect_to_schema("action");
  const auto waits = context.watch_waits(*connection, "action");
  const auto catalogue = queue::read_queues(*connection);
  queue::require_valid(change, catalogue.actions);
  queue::require_role(*connection, change.after.producer);
  return run_change(options, context, *connection, change, catalogue);
}

ExitCode action_set(const ActionOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("action");
  const auto waits = context.watch_waits(*connection, "action");
  const auto catalogue = queue::read_queues(*connection);
  const auto& action = named_action(catalogue, options.name);
  const auto after = changed(action, options);
  queue::require_changeable(action, !after.account_status.empty());
  queue::require_role(*connection, after.producer);
  return run_change(options, context, *connection, {.before = action, .after = after}, catalogue);
}

ExitCode action_retire(const ActionOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("action");
  const auto waits = context.watch_waits(*connection, "action");
  const auto catalogue = queue::read_queues(*connection);
  const auto& action = named_action(catalogue, options.name);
  queue::require_changeable(action, true);
  const bool json = context.global().output == OutputFormat::json;
  if (!json && !action.is_retired) context.say(render_retirement(action, catalogue));
  const bool stays = options.dry_run || action.is_retired;
  if (!stays) {
    confirm(context, fmt::format("retire action {}?", action.name));
    queue::retire_action(*connection, action.name, queue::operator_author(*connection, options.reason));
  }
  if (json) {
    context.print(json_text(nlohmann::ordered_json{{"action", action.name}, {"carried_out", !stays}}) + "\n");
  } else {
    context.print(!stays ? "done\n" : options.dry_run ? "dry run: nothing was changed\n" : "nothing to do\n");
  }
  return ExitCode::done;
}

void add_name(CommandSyntax& syntax, ActionOptions& options) {
  syntax.text("NAME", options.name, "name of the action").required();
}

void add_change(CommandSyntax& syntax, ActionOptions& options) {
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
  syntax.flag("--dry-run", options.dry_run, "show the plan and stop");
}

/// Those that may change later.
void add_properties(CommandSyntax& syntax, ActionOptions& options) {
  const config::Choices<std::optional<std::string>> statuses{
      {"provisioned", "provisioned"}, {"active", "active"}, {"suspended", "suspended"}, {"none", "none"}};
  syntax.choice(
      "--account-status STATUS", options.account_status, statuses, "provisioned, active, suspended or none",
      "mail accounts only, while they have this status: provisioned, active, suspended; none: any address [none]");
  syntax.text("--lifetime DURATION", options.lifetime,
              "let a token expire after this time, such as 15m or 72h; none: never [72h]");
  syntax.text(
      "--template NAME", options.template_name,
      "write messages that name no template and have no content with this one [the name of the action]");
  const config::Choices<std::optional<bool>> answers{{"yes", true}, {"no", false}};
  syntax.choice("--security ANSWER", options.security, answers, "yes or no",
                "yes: security mail, which an address gets even after a complaint [no]");
  syntax.text("--producer ROLE", options.producer,
              "let only this role ask for it; none: every producer [none]");
}

void add_create(CommandSyntax& syntax, ActionOptions& options) {
  add_name(syntax, options);
  syntax.text("--path PATH", options.path,
              "sign a link for each recipient, whose signature begins with this, such as /magic [no link]");
  syntax.flag("--code", options.has_code, "draw a code of five digits, which the signature covers, too");
  add_properties(syntax, options);
  add_change(syntax, options);
}

void add_set(CommandSyntax& syntax, ActionOptions& options) {
  add_name(syntax, options);
  add_properties(syntax, options);
  add_change(syntax, options);
}

void add_named_change(CommandSyntax& syntax, ActionOptions& options) {
  add_name(syntax, options);
  add_change(syntax, options);
}

/// In help order.
constexpr Subcommand<ActionOptions, Context&> action_commands[] = {
    {"list", "show all actions, and which queues take them", action_list, nullptr},
    {"show", "show one action", action_show, add_name},
    {"create", "create an action; show the plan", action_create, add_create},
    {"set", "change an action; ask if that changes whose tokens are due", action_set, add_set},
    {"retire", "refuse new messages of an action; ask", action_retire, add_named_change},
};

Run add_action(CommandSyntax& syntax) {
  auto options = std::make_shared<ActionOptions>();
  const auto chosen = syntax.commands(action_commands, *options);
  return [options, chosen](Context& context) { return (*chosen)->run(*options, context); };
}

}  // namespace

const Command action_command{
    "action", "define the kinds of mail: their links, lifetimes and templates",
    "Examples:\n"
    "  mailroom action list                                     show the actions\n"
    "  mailroom action create magic_link --path /magic --lifetime 10m\n"
    "  mailroom action create receipt --dry-run\n",
    add_action,
    "An action is a kind of mail: activation and recovery, which accounts have, message, and those that you create. "
    "Messages name one: SELECT mailroom_send(ARRAY['ada@example.org'], action => 'magic_link'). Queues take the tokens of "
    "some actions or of all; an action of its own lets a kind of mail have a queue, a rate and a priority of its own.\n\n"
    "An action with a path gives each recipient a signed link. The signature covers the path, the secret of the token and, "
    "with --code, a code, as mailroom verify checks it. An action with an account status mails accounts only, at the "
    "address of the account, and only while the account has this status. Whoever may choose the recipient of a signed "
    "link can act for its owner: --producer reserves an action to a role.\n\n"
    "Name, number, path and code never change, since signatures and lines of CSV depend on them. An action is never "
    "removed: a retired one takes no new messages, and what is queued goes on. Running consumers learn of a change at "
    "once. The actor and the reason of each change are recorded; mailroom audit shows them."};

}  // namespace mailroom::cmd
