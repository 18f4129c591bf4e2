// Reads each value as it is typed, so that a mistake is refused before the command connects, but for names
// that only the database knows.

#include "cmd/selection/selection_options.hpp"

#include <fmt/format.h>

#include "accounts/account_lookup.hpp"
#include "audit/timeline.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "mail/address.hpp"
#include "messages/message_search.hpp"
#include "queue/action.hpp"

namespace mailroom::cmd {
namespace {

constexpr const char* mailing_options = "--mailed-";
constexpr const char* selectors_group = "Selectors, lists by comma; a token must match each";

std::int64_t parse_batch(const std::string& text) {
  if (const auto id = accounts::parse_id(text.starts_with("batch:") ? text.substr(6) : text)) return *id;
  throw Error(ExitCode::usage, "'" + text + "' is not the id of a batch",
              "ids are numbers, as in --batch 51");
}

/// Calls `read` with each part of a list.
template <typename Read>
std::function<void(const std::string&)> list_of(const Read& read) {
  return [read](const std::string& text) {
    for (const auto& part : selection::split_list(text)) {
      if (part.empty())
        throw Error(ExitCode::usage, "a list has an empty part: '" + text + "'", "give a value");
      read(part);
    }
  };
}

/// An address of a message is no account, and the hint says where it can be named.
std::vector<accounts::AccountRecord> find_selected_accounts(db::Connection& connection,
                                                            const std::vector<std::string>& names) {
  try {
    return accounts::find_accounts(connection, names);
  } catch (const Error& error) {
    if (error.code() != ExitCode::unusable) throw;
    for (const auto& name : names) {
      const auto address = mail::address_of_mailbox(name);
      if (address.find('@') == std::string::npos || messages::find_messages(connection, address, 1).empty())
        continue;
      throw Error(
          error.code(), error.what(),
          fmt::format("messages went to {}, which audit, resend and revoke take as NAME: mailroom audit {}",
                      shown_text(address), shell_word(address)));
    }
    throw;
  }
}

}  // namespace

void select_outcome(selection::Selection& typed, const std::string& option, const std::string& text) {
  const auto doubt = selection::find_doubt(text);
  if (!doubt) return typed.outcomes.push_back(selection::parse_outcome(option, text));
  if (typed.doubt != selection::Doubt::none && typed.doubt != *doubt)
    throw Error(ExitCode::usage, fmt::format("{} has perhaps_twice and in_flight", option),
                "in_flight includes what was perhaps mailed twice");
  typed.doubt = *doubt;
}

std::vector<std::string> outcome_choices() {
  auto words = selection::outcome_words();
  for (auto& word : selection::doubt_words())
    words.push_back(std::move(word));
  return words;
}

void add_mail_selectors(CommandSyntax& syntax, selection::MailSelectors& selectors, const char* group) {
  const auto add = [&](const std::string& spec, std::vector<std::string>& values, const std::string& help) {
    syntax.texts(spec, values, help).in_group(group);
  };
  syntax
      .value("--domain DOMAIN,...", "to addresses of these domains",
             list_of([&selectors](const std::string& part) {
               selectors.domains.push_back(selection::parse_domain("--domain", part));
             }))
      .repeated()
      .in_group(group);
  add("--role ROLE", selectors.roles, "that this role asked for; repeatable");
  add("--template NAME", selectors.templates, "of this template, or of an action that has it; repeatable");
  add("--subject TEXT", selectors.subjects, "whose subject has TEXT in it, in any case; repeatable");
  add("--locale LOCALE", selectors.locales, "asked for in this locale; repeatable");
  add("--queue-id ID", selectors.queue_ids,
      "that the relay answered for with its id ID: of a million mails it takes seconds; repeatable");
  syntax
      .value("--message-id ID", "with this Message-ID; repeatable",
             [&selectors](const std::string& text) {
               selectors.message_ids.push_back(selection::parse_message_id("--message-id", text));
             })
      .repeated()
      .in_group(group);
}

void add_selectors(CommandSyntax& syntax, SelectionOptions& options, const std::string& since_default,
                   const std::string& what) {
  auto& typed = options.typed;
  const auto add = [&](const std::string& spec, const std::string& help, const auto& read) {
    auto option = syntax.value(spec, help, list_of(read));
    option.repeated().in_group(selectors_group);
    return option;
  };
  add("--action ACTION,...", "of these actions: activation, recovery, message, or one of your own",
      [&options](const std::string& part) { options.actions.push_back(part); })
      .offers(queue::Actions::built_in().short_names());
  add("--account ACCOUNT,...", "of these accounts: id, email or login; also id:7, email:ADDRESS, login:NAME",
      [&options](const std::string& part) { options.accounts.push_back(part); });
  add("--outcome OUTCOME,...",
      "with these outcomes, as reports name them: rejected,expired; or perhaps_twice, or in_flight",
      [&typed](const std::string& part) { select_outcome(typed, "--outcome", part); })
      .offers(outcome_choices());
  add("--code CODE,...", "with these codes in the last answer: 550, or 5xx",
      [&typed](const std::string& part) { typed.codes.push_back(selection::parse_code("--code", part)); });
  add("--batch N,...", "of these batches",
      [&typed](const std::string& part) { typed.batches.push_back(parse_batch(part)); });
  add("--consumer NAME,...", "that these consumers claimed: send, send@host or send@host:77",
      [&typed](const std::string& part) {
        constexpr std::string_view program = "mailroom ";
        typed.consumers.push_back(part.starts_with(program) ? part.substr(program.size()) : part);
      });
  add("--key FINGERPRINT,...", "signed with these keys, as mailroom status shows them, in the newest mail",
      [&typed](const std::string& part) {
        typed.keys.push_back(selection::parse_key_fingerprint("--key", part));
      });
  add_mail_selectors(syntax, typed.mail, selectors_group);
  syntax
      .text("--since TIME", options.since,
            what + " from TIME on: 2h, 2026-11-21 or 2026-11-21T09:30, in UTC" +
                (since_default.empty() ? "" : " [" + since_default + "]"))
      .in_group(selectors_group);
  syntax.text("--until TIME", options.until, what + " before TIME").in_group(selectors_group);
}

void add_mailing_selectors(CommandSyntax& syntax, SelectionOptions& options) {
  syntax.text("--mailed-since TIME", options.mailed_since, "tokens mailed from TIME on, whenever created")
      .in_group(selectors_group);
  syntax.text("--mailed-until TIME", options.mailed_until, "tokens mailed before TIME")
      .in_group(selectors_group);
}

std::string no_match_hint(const SelectionOptions& options) {
  if (options.since.empty() && options.until.empty()) return "";
  return "--since and --until mean when a token was created; --mailed-since and --mailed-until, when it was mailed.\n";
}

void check_selection(const SelectionOptions& options) {
  audit::parse_period(options.since, "", {});
  audit::parse_period("", options.until, {});
  audit::parse_period(options.mailed_since, "", {}, mailing_options);
  audit::parse_period("", options.mailed_until, {}, mailing_options);
}

selection::Selection read_selection(db::Connection& connection, const SelectionOptions& options) {
  auto selection = options.typed;
  if (!options.actions.empty()) {
    const auto known = queue::read_actions(connection);
    for (const auto& text : options.actions)
      selection.actions.push_back(known.require(text, "--action has", ExitCode::usage).name);
  }
  for (const auto& account : find_selected_accounts(connection, options.accounts))
    selection.accounts.push_back(account.id);
  if (options.since.empty() && options.until.empty() && !options.by_mailing()) return selection;
  const auto now = connection.server_time();
  const auto created = audit::parse_period(options.since, options.until, now);
  if (!options.since.empty()) selection.since = created.since;
  if (!options.until.empty()) selection.until = created.until;
  const auto of_mails = audit::parse_period(options.mailed_since, options.mailed_until, now, mailing_options);
  if (!options.mailed_since.empty()) selection.mailed_since = of_mails.since;
  if (!options.mailed_until.empty()) selection.mailed_until = of_mails.until;
  return selection;
}

}  // namespace mailroom::cmd
