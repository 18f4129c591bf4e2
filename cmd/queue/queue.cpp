// mailroom queue: lists, defines, pauses and drops queues. Describes its commands and their options.

#include <fmt/format.h>

#include "base/text.hpp"
#include "cmd/command.hpp"
#include "cmd/queue/queue_action.hpp"

namespace mailroom::cmd {
namespace {

/// An option that sets `key` of a queue or of a budget.
Option add_value(CommandSyntax& syntax, const std::string& spec, const std::string& key,
                 std::vector<config::SettingValue>& values, const std::string& help) {
  const auto name = spec.substr(0, spec.find(' '));
  return syntax.value(spec, help, [&values, key, name](const std::string& text) {
    config::SettingValue value{
        .key = key, .text = text, .items = {}, .origin = {config::OriginKind::flag, name}};
    for (const auto item : split(text, ','))
      value.items.emplace_back(item);
    values.push_back(std::move(value));
  });
}

std::vector<std::string> names_and_all() {
  auto names = queue::Actions::built_in().short_names();
  names.emplace_back("all");
  return names;
}

void add_name(CommandSyntax& syntax, QueueOptions& options) {
  syntax.text("NAME", options.name, "name of the queue").required();
}

void add_reason(CommandSyntax& syntax, QueueOptions& options) {
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
}

void add_change(CommandSyntax& syntax, QueueOptions& options) {
  add_reason(syntax, options);
  syntax.flag("--dry-run", options.dry_run, "show the plan and stop");
}

void add_named_change(CommandSyntax& syntax, QueueOptions& options) {
  add_name(syntax, options);
  add_change(syntax, options);
}

void add_pause(CommandSyntax& syntax, QueueOptions& options) {
  add_name(syntax, options);
  add_reason(syntax, options);
}

void add_properties(CommandSyntax& syntax, QueueOptions& options) {
  add_name(syntax, options);
  auto& values = options.values;
  add_value(
      syntax, "--action ACTION,...", "actions", values,
      "take only tokens of these actions: activation, recovery, message, or one of your own; all: take every token")
      .offers(names_and_all());
  add_value(syntax, "--priority N", "priority", values,
            "serve this queue before those with a lower number [0]");
  add_value(syntax, "--rate RATE", "rate", values,
            "emit at most RATE, such as 14/s or 0.38/s; none: no limit");
  add_value(syntax, "--burst N", "burst", values,
            "emit at most N tokens at once, within the rate [those of 0.1 s, at least 1]");
  add_value(syntax, "--budget NAME", "budget", values,
            "keep the rate NAME together with other queues; none: share no rate");
  add_value(syntax, "--budget-rate RATE", "rate", options.budget_values,
            "set the rate of that budget, and create it if necessary");
  add_value(syntax, "--budget-burst N", "burst", options.budget_values,
            "set the burst of that budget [those of 0.1 s, at least 1]");
  add_value(syntax, "--batch-limit N", "batch_limit", values,
            "collect: put at most N tokens in a batch, if its configuration does not say; none: its default");
  add_value(syntax, "--batch-timeout DURATION", "batch_timeout", values,
            "collect: let a token wait at most this long for its batch to fill; likewise");
  add_change(syntax, options);
}

/// In help order.
constexpr Subcommand<QueueOptions, Context&> queue_actions[] = {
    {"list", "list the queues and the budgets that they share", queue_list, nullptr},
    {"show", "show a queue: its definition, its budget, and what waits in it", queue_show, add_name},
    {"create", "create a queue; ask if it emits tokens that are due already", queue_create,
     [](CommandSyntax& syntax, QueueOptions& options) {
       add_properties(syntax, options);
       syntax.text(
           "--from WHERE", options.from,
           "emit tokens from here on: start, end, a TIME (UTC, or how long ago), or queue:NAME, to emit what that "
           "queue has not taken yet [of the queue that it takes tokens over from; otherwise end]");
       syntax.flag("--copy", options.copy,
                   "emit each token once more, beside the queues that take it: each person is mailed twice");
     }},
    {"set", "change a queue; ask if that changes who is mailed", queue_set, add_properties},
    {"pause", "let a queue give out no batch; batches in flight are finished", queue_pause, add_pause},
    {"resume", "end the pause of a queue", queue_resume, add_pause},
    {"drop", "drop a queue; show what is due in it, and ask", queue_drop, add_named_change},
    {"apply", "create and change queues as FILE defines them; show the plan", queue_apply,
     [](CommandSyntax& syntax, QueueOptions& options) {
       syntax.text("FILE", options.file, "file of YAML with the sections budgets and queues").required();
       add_change(syntax, options);
     }},
};

Run add_queue(CommandSyntax& syntax) {
  auto options = std::make_shared<QueueOptions>();
  const auto chosen = syntax.commands(queue_actions, *options);
  return [options, chosen](Context& context) { return (*chosen)->run(*options, context); };
}

}  // namespace

const Command queue_command{
    "queue", "define queues: their actions, priorities and rates",
    "Examples:\n"
    "  mailroom queue list                           show the queues\n"
    "  mailroom queue create recovery --action recovery --priority 10 --dry-run\n"
    "  mailroom queue apply queues.yaml --dry-run    show what a file changes\n"
    "\n"
    "A file for apply; a queue that it names has the defaults for what it leaves out:\n"
    "  queues:\n"
    "    recovery: {actions: [recovery], priority: 10, from: 'queue:mailroom'}\n"
    "    mailroom: {actions: [activation, message]}\n"
    "With a rate that both keep together, the file begins with a budget, and each queue has budget: provider:\n"
    "  budgets:\n"
    "    provider: {rate: RATE OF YOUR PROVIDER, burst: 10}\n",
    add_queue,
    "A queue has a cursor of its own over the tokens of the database, and takes those of some actions or of all. "
    "Definitions are in the database, since all consumers must agree on them; consumers that run read them again at "
    "once. Two queues that take one action both emit each of its tokens, and each person is mailed twice.\n\n"
    "The priority says which queue a consumer of several queues (--queue recovery,mailroom) serves first. A rate, such "
    "as 14/s, 100/min or 0.38/s, is kept by all consumers of the queue together; the burst is how many tokens may go "
    "at once. A budget is a rate that several queues keep together, such as the quota of a mail provider.\n\n"
    "Each command that changes a queue shows its plan. create, set and apply ask, or require --yes, if they "
    "change who is mailed: the actions of a queue change, a new queue emits tokens that are due already, or two queues "
    "emit the same tokens. create takes the actions over from the queue that takes them now, with the tokens that wait, in "
    "one transaction; restart the sender then, with --queue and both names. It refuses to leave that queue without an "
    "action. With --copy the other queue keeps them: each token is emitted by both, for a second system. A queue that "
    "takes nothing over begins at the end, with tokens that are created from now on. --from queue:NAME begins where "
    "another queue is; apply can create the one and change the other in one transaction. drop always asks.\n\n"
    "A paused queue gives out no batch; its consumers stay connected. apply carries out all changes of a file, or none, "
    "and does nothing if there is none to carry out. Queues that the file does not name stay as they are. The actor "
    "and the reason of each change are recorded; mailroom audit shows them."};

}  // namespace mailroom::cmd
