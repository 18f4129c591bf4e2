// mailroom message: lists, shows, sends and cancels messages. Describes its commands and their options.

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/selection/selection_options.hpp"
#include "selection/selection.hpp"

namespace mailroom::cmd {
namespace {

constexpr const char* message_selectors_group = "Selectors, lists by comma; a message must match each";

std::vector<std::string> message_state_words() {
  auto words = selection::outcome_words();
  words.insert(words.end(), {"scheduled", "replaced"});
  return words;
}

/// `in gap` or `in_gap`.
std::string parse_message_state(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  std::replace(text.begin(), text.end(), '-', '_');
  const auto words = message_state_words();
  if (std::ranges::find(words, text) != words.end()) return text;
  const auto meant = nearest_word(text, words);
  throw Error(ExitCode::usage, fmt::format("--state has an unknown state '{}'", text),
              meant.empty() ? fmt::format("states: {}", joined(words, ", ")) : "did you mean: " + meant);
}

messages::RoleLimits::value_type parse_role_limit(const std::string& text) {
  const auto at = text.rfind('=');
  const auto rate = at == std::string::npos ? std::string() : text.substr(at + 1);
  const auto limit = config::parse_rate(rate);
  if (at == 0 || (!limit && rate != "none"))
    throw Error(ExitCode::usage, fmt::format("--limit is '{}', and must be a role and a rate", text),
                "such as shop=1000/h, or shop=none");
  return {text.substr(0, at), limit};
}

/// Adds a list to `values`, split at its commas.
void add_selector_list(CommandSyntax& syntax, const std::string& spec, std::vector<std::string>& values,
                       const std::string& help, std::optional<char> separator = ',') {
  syntax.texts(spec, values, help, separator).in_group(message_selectors_group);
}

void add_message_selectors(CommandSyntax& syntax, MessageSelectors& selectors,
                           const std::string& since_default) {
  auto& typed = selectors.typed;
  syntax
      .value("--state STATE,...",
             fmt::format("of which a recipient has one of these states, which docs/outcomes.md explains: {}",
                         joined(message_state_words(), ", ")),
             [&typed](const std::string& text) {
               for (const auto& part : selection::split_list(text))
                 typed.states.push_back(parse_message_state(part));
             })
      .repeated()
      .offers(message_state_words())
      .in_group(message_selectors_group);
  add_selector_list(syntax, "--recipient ADDRESS", typed.recipients,
                    "to this address, or that of a mailbox, also as cc or bcc; repeatable", std::nullopt);
  add_selector_list(syntax, "--reference TEXT", typed.references, "with this reference; repeatable",
                    std::nullopt);
  add_selector_list(syntax, "--action ACTION,...", typed.actions, "of these actions");
  add_selector_list(syntax, "--owner ROLE", typed.owners, "that belong to this role; repeatable",
                    std::nullopt);
  add_mail_selectors(syntax, typed.mail, message_selectors_group);
  syntax
      .text("--since TIME", selectors.since,
            "from TIME on: 2h, 2026-11-21 or 2026-11-21T09:30, in UTC" + since_default)
      .in_group(message_selectors_group);
  syntax.text("--until TIME", selectors.until, "before TIME").in_group(message_selectors_group);
}

void add_roles_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.text("--since TIME", options.selectors.since,
              "from TIME on: 2h, 2026-11-21 or 2026-11-21T09:30, in UTC [24h]");
  syntax.text("--until TIME", options.selectors.until, "before TIME");
  syntax.flag("--by-hour", options.by_hour, "a line for each hour and role instead");
  syntax
      .value("--limit ROLE=RATE",
             "let ROLE ask for so many mails, such as shop=1000/h; ROLE=none: for any number. Repeatable",
             [&options](const std::string& text) { options.limits.insert(parse_role_limit(text)); })
      .repeated();
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
}

void add_counts_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax
      .value("--by WORD,...", "a line for each role, action, domain, profile or day [role,domain]",
             [&options](const std::string& text) {
               for (const auto& part : selection::split_list(text))
                 options.counted_by.push_back(parse_counted_by(part));
             })
      .repeated()
      .offers({"role", "action", "domain", "profile", "day"});
  syntax.text("--since TIME", options.selectors.since,
              "of tokens created from TIME on: 2h, 2026-11-21 or 2026-11-21T09:30, in UTC [today]");
  syntax.text("--until TIME", options.selectors.until, "before TIME");
}

void add_list_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.number<std::int64_t>("--limit N", options.limit, {1, 100'000},
                              "show only the newest N, and say if there are more [100]");
  add_message_selectors(
      syntax, options.selectors,
      " [24h, without --recipient, --reference, --queue-id, --message-id and --state scheduled]");
}

void add_show_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.texts("MESSAGE", options.names, "id or uuid of a message").required();
  syntax.flag("--raw", options.raw, "write the bytes of a raw mail instead");
  syntax.flag("--rendered", options.rendered,
              "make the mail again, write it, and say whether it is the one that was handed over");
  syntax.text("--recipient ADDRESS", options.recipient, "with --rendered: the mail to ADDRESS");
}

void add_record_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.texts("MESSAGE", options.names, "id or uuid of a message").required();
  syntax.text("--to FILE", options.file, "write FILE, which is new: .html, a page that prints, or .json")
      .required();
  syntax.text("--recipient ADDRESS", options.recipient, "only what concerns the mail to ADDRESS");
}

void add_cancel_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.texts("MESSAGE", options.names, "id or uuid of a message");
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
  syntax.flag("--dry-run", options.dry_run, "show the plan and stop");
  add_message_selectors(syntax, options.selectors, "");
}

void add_reschedule_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.texts("MESSAGE", options.names, "id or uuid of a message");
  syntax
      .text("--send-after TIME", options.send.send_after,
            "not before TIME: 2h from now, or 2026-11-21T09:30, in UTC; now: at once")
      .required();
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
  syntax.flag("--dry-run", options.dry_run, "show the plan and stop");
  add_message_selectors(syntax, options.selectors, "");
}

void add_forget_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.texts("ADDRESS", options.names, "an address, such as ada@example.org, or a mailbox with it");
  syntax.texts("--reference TEXT", options.selectors.typed.references,
               "forget the messages with this reference");
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason, without the address");
  syntax.flag("--dry-run", options.dry_run, "show the plan and stop");
}

void add_export_options(CommandSyntax& syntax, MessageOptions& options) {
  syntax.texts("ADDRESS", options.names, "an address, such as ada@example.org, or a mailbox with it")
      .required();
  syntax.text("--to FILE", options.file, "write FILE, which is new, as JSON").required();
}

void add_recipients(CommandSyntax& syntax, messages::NewMessage& message) {
  syntax.texts(
      "--to MAILBOX", message.recipients,
      "to this mailbox: ada@example.org or 'Ada <ada@example.org>'; repeatable. All recipients see the "
      "mailboxes of --to and --cc");
  syntax.texts("--cc MAILBOX", message.cc, "the same, in the header Cc");
  syntax.texts("--bcc MAILBOX", message.bcc, "the same, and nobody sees it");
  syntax.value(
      "--account ID", "to the address of this account, instead of --to", [&message](const std::string& text) {
        const auto id = parse_number<std::int64_t>(text);
        if (!id)
          throw Error(ExitCode::usage, "--account is '" + text + "', and must be the id of an account");
        message.account = *id;
      });
  syntax.text("--from MAILBOX", message.sender, "send as this mailbox [send.from]");
  syntax.text("--reply-to MAILBOX", message.reply_to,
              "ask for answers to this mailbox, or to several with commas between them");
}

void add_content(CommandSyntax& syntax, MessageSendOptions& options) {
  auto& message = options.message;
  syntax.text("--template NAME", message.template_name,
              "make the mail of this template [that of the action]");
  syntax.text("--locale LOCALE", message.locale, "use the template's files for LOCALE, such as de-AT");
  auto data = syntax.text("--data JSON", message.data, "the data of the template");
  syntax.text("--data-file FILE", options.data_file, "read the data from FILE; -: from stdin").excludes(data);
  syntax.text("--subject TEXT", message.subject, "the subject, without a template");
  auto text = syntax.text("--text TEXT", message.text, "the text, likewise");
  syntax.text("--text-file FILE", options.text_file, "read the text from FILE; -: from stdin").excludes(text);
  syntax.text("--html-file FILE", options.html_file, "read the HTML from FILE; -: from stdin");
  syntax.texts("--attach FILE", options.files, "attach FILE; repeatable");
  syntax.texts("--header HEADER", options.headers, "add a header, such as 'X-Order: 17'; repeatable");
}

void add_send_options(CommandSyntax& syntax, MessageOptions& options) {
  auto& message = options.send.message;
  add_recipients(syntax, message);
  add_content(syntax, options.send);
  syntax.text("--action ACTION", message.action, "send a mail of this action [message]");
  syntax.text("--profile NAME", message.profile, "send as this profile");
  syntax.text("--topic NAME", message.topic, "let its reader unsubscribe from this topic");
  syntax.text("--send-after TIME", options.send.send_after,
              "not before TIME: 2h from now, or 2026-11-21T09:30, in UTC [now]");
  syntax.text("--expires-at TIME", options.send.expires_at,
              "give up at TIME, likewise; never: do not give up [by the action]");
  syntax.text("--key KEY", message.key, "send one message for KEY, however often this is run");
  syntax.flag("--replace", message.replace,
              "send all the same, instead of the message with this key: cancel that if it has not left");
  syntax.text("--reference TEXT", message.reference, "what the mail is about, such as order:17");
}

/// In help order.
constexpr Subcommand<MessageOptions, Context&> message_actions[] = {
    {"list", "list messages and what became of them, newest first", message_list, add_list_options},
    {"roles", "list who asked for how many messages, most first, and limit it", message_roles,
     add_roles_options},
    {"counts", "count the mails of today by role and domain, and what became of them", message_counts,
     add_counts_options},
    {"show", "show a message, and what became of it for each recipient", message_show, add_show_options},
    {"record", "write all that is on record of a letter to a file", message_record, add_record_options},
    {"send", "send a message, as mailroom_send() does", message_send, add_send_options},
    {"cancel", "cancel messages that have not left; show the plan first", message_cancel, add_cancel_options},
    {"reschedule", "move messages that wait for their time to another one; show the plan first",
     message_reschedule, add_reschedule_options},
    {"export", "write all that is on record of an address to a file", message_export, add_export_options},
    {"forget", "remove an address from everything on record, for good; show the plan first", message_forget,
     add_forget_options},
};

Run add_message(CommandSyntax& syntax) {
  auto options = std::make_shared<MessageOptions>();
  const auto chosen = syntax.commands(message_actions, *options);
  return [options, chosen](Context& context) { return (*chosen)->run(*options, context); };
}

}  // namespace

const Command message_command{
    "message", "list, count, show, record, send, cancel, reschedule, export and forget messages",
    "Examples:\n"
    "  mailroom message send --to ada@example.org --subject Hello --text 'It works.'\n"
    "  mailroom message list --state deferred,rejected    what did not arrive\n"
    "  mailroom message forget ada@example.org            a person who asks for it\n",
    add_message,
    "A message is a mail that an application asked for with mailroom_send() or an INSERT into mailroom_messages. Each of its "
    "recipients gets a mail of his own, with a state of its own: scheduled before its time, then a word of docs/outcomes.md, or "
    "cancelled or replaced.\n\n"
    "list shows the newest messages that match all selectors, and says on stderr if --limit leaves older ones out. show says what a message asks for, and, for each recipient and "
    "queue, the state, the attempts and the last answer; it shows the data of a template, but not the text of a mail. "
    "With --rendered it makes a mail that was handed over again, from the message and the templates, settings and key of today, and compares its "
    "SHA-256 with the one on record (send.evidence): exit status 1 if they differ, with the likely reason on stderr. The hash covers header and "
    "body as mailroom made them, not what a relay adds, nor the form in which a provider takes a mail. A mail whose content was removed "
    "cannot be made again: its hash stays. record writes request, mails, hashes, the words of relays and the history "
    "to a file, for somebody who asks for evidence. roles shows "
    "how many messages each role has asked for, in all, in the last hour, and in the busiest one. Its --limit sets how many mails a role "
    "may ask for, whichever way; a group, its members together. A mail to three recipients is three, and one that is refused is to be asked for later.\n\n"
    "send calls mailroom_send(), which refuses what cannot be a mail; the message leaves with the next batch of a sender. "
    "Without --to it needs an action of accounts and --account. With --key a second call sends nothing, and says which "
    "message has the key. With --replace the new one takes its place: what has not left is cancelled, and the output says if it had "
    "left. Each recipient gets a mail of his own with the same headers, so all see whom --to and --cc name. Mails to people who must "
    "not know of each other are a call for each, or --bcc.\n\n"
    "cancel shows how many messages have not left, and asks, or requires --yes; it cancels the oldest first, some hundred at a "
    "time, and can be interrupted. To stop many, mailroom queue pause stops all mails of a queue first, and mailroom revoke ends "
    "what waits of an action in seconds. A mail that a consumer is just sending may still leave. Links of what is cancelled no longer work. A role that may not update "
    "mailroom_messages cancels what it, or a role that it is a member of, has asked for.\n\n"
    "reschedule moves messages that still wait for their time; what is due already is to be cancelled and asked for again. The history has who cancelled or moved what others had asked for, and, with --reason, also his own.\n\n"
    "export writes what forget would find to a file, for a person who asks what is on record of him: messages with their content while it is kept, "
    "deliveries, what came back, suppressions and topics that he left, operations, accounts. Other recipients are not in it, nor the content of "
    "messages to others that name him, nor other addresses in the words of relays and operators.\n\n"
    "forget removes an address from every row that mailroom has written: it cancels what waits for the person, and removes the "
    "address, the content that nobody else is to get, the reference, the key, and the words of relays. Messages to others lose "
    "it too, as a sender, a reply-to or a header, with their content if that names it, once they can be sent no more; one that "
    "can still be sent keeps it, and the exit status is 8. What remains says that something was delivered, and not to whom; "
    "who did an operation stays. It shows the plan, and asks, or requires --yes. The role must own the tables. What is left in "
    "dead rows, in the write-ahead log and in backups, docs/messages.md says."};

}  // namespace mailroom::cmd
