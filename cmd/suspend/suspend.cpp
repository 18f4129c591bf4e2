// mailroom suspend: suspends accounts or lifts their suspension, and shows which tokens are skipped.

#include <algorithm>
#include <fmt/format.h>
#include <iostream>

#include "accounts/suspension.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/text_table.hpp"
#include "replay/rewind.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

struct SuspendOptions {
  std::vector<std::string> accounts;
  bool undo = false;
  bool replay = false;
  std::string reason;
};

/// The changed accounts, and how many tokens are emitted again.
struct SuspendOutcome {
  std::vector<accounts::StatusChange> changes;
  std::int64_t replayed = 0;    ///< by all queues
  std::int64_t replayable = 0;  ///< the same, with those that an earlier run has replayed
};

/// Replaces `-` with the lines of stdin. Throws Error(usage) if no account is named.
std::vector<std::string> all_names(const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const auto& argument : arguments) {
    if (argument != "-") {
      names.push_back(argument);
      continue;
    }
    for (std::string line; std::getline(std::cin, line);) {
      if (const auto name = trimmed(line); !name.empty()) names.emplace_back(name);
    }
  }
  if (!names.empty()) return names;
  throw Error(ExitCode::usage, "no account is named",
              "give ids, emails or logins, or - to read them from stdin, one per line");
}

/// Emits the tokens again, in each queue those that it has not emitted.
void replay(pqxx::transaction_base& transaction, const config::Settings& settings, SuspendOutcome& outcome) {
  const auto details = plain_json(nlohmann::json{{"after", "suspend --undo"}});
  for (const auto& queue : settings.collect.queues) {
    std::vector<std::int64_t> tokens;
    for (const auto& change : outcome.changes) {
      const auto& of_queue = change.by_queue.at(queue);
      tokens.insert(tokens.end(), of_queue.begin(), of_queue.end());
    }
    outcome.replayable += static_cast<std::int64_t>(tokens.size());
    outcome.replayed += replay::replay_tokens(transaction, queue, tokens, details, settings.collect.channel);
  }
}

SuspendOutcome carry_out(const SuspendOptions& options, Context& context, db::Connection& connection,
                         const std::vector<accounts::AccountRecord>& accounts) {
  const auto& settings = context.settings();
  const auto author = queue::operator_author(connection, options.reason);
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    if (!options.undo)
      return SuspendOutcome{.changes =
                                accounts::suspend_accounts(transaction, settings.collect.queues, accounts)};
    SuspendOutcome outcome{.changes =
                               accounts::restore_accounts(transaction, settings.collect.queues, accounts)};
    if (options.replay) replay(transaction, settings, outcome);
    return outcome;
  });
}

std::size_t token_count(const std::vector<accounts::StatusChange>& changes) {
  std::size_t count = 0;
  for (const auto& change : changes)
    count += change.tokens.size();
  return count;
}

std::string tokens_text(std::size_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", with_thousands(static_cast<std::int64_t>(count)),
                     count == 1 ? singular : plural);
}

std::string undo_note(const SuspendOptions& options, const SuspendOutcome& outcome) {
  const auto count = token_count(outcome.changes);
  if (count == 0) return "no token was skipped meanwhile\n";
  const auto tokens = tokens_text(count, "token that was skipped is", "tokens that were skipped are");
  if (!options.replay) return tokens + " not emitted; --undo --replay emits what is still due\n";
  return outcome.replayed == outcome.replayable
             ? tokens + " to be emitted\n"
             : fmt::format("{} to be emitted, {} of them by an earlier run\n", tokens,
                           with_thousands(outcome.replayable - outcome.replayed));
}

std::string suspension_text(const SuspendOptions& options, const SuspendOutcome& outcome, std::size_t width) {
  TextTable table({{"account", TextTable::Align::right},
                   {"login"},
                   {"before"},
                   {"after"},
                   {options.undo ? "skipped" : "pending", TextTable::Align::right}});
  for (const auto& change : outcome.changes) {
    table.add({std::to_string(change.account.id), printable(change.account.login), change.before,
               change.before == change.after ? change.after + " (as before)" : change.after,
               with_thousands(static_cast<std::int64_t>(change.tokens.size()))});
  }
  auto text = table.render(width);
  if (options.undo) return text + undo_note(options, outcome);
  const auto count = token_count(outcome.changes);
  if (count > 0) text += tokens_text(count, "pending token", "pending tokens") + " will be skipped\n";
  return text;
}

std::string suspension_json(const SuspendOptions& options, const SuspendOutcome& outcome) {
  const auto change_json = [&](const accounts::StatusChange& change) -> Json {
    return {{"id", change.account.id},
            {"login", change.account.login},
            {"before", change.before},
            {"after", change.after},
            {options.undo ? "skipped" : "pending", change.tokens}};
  };
  Json object{{"accounts", array_json<Json>(outcome.changes, change_json)}};
  if (options.undo) object["replayed"] = outcome.replayed;
  return json_text(object) + "\n";
}

ExitCode run_suspend(const SuspendOptions& options, Context& context) {
  if (options.replay && !options.undo) {
    throw Error(ExitCode::usage, "--replay needs --undo",
                "give --undo too: the tokens of a suspended account are skipped");
  }
  const auto names = all_names(options.accounts);
  const auto connection = context.connect_to_schema("suspend");
  const auto waits = context.watch_waits(*connection, "suspend");
  const auto accounts = accounts::find_accounts(*connection, names);
  const auto outcome = carry_out(options, context, *connection, accounts);
  const bool json = context.global().output == OutputFormat::json;
  if (json) {
    context.print(suspension_json(options, outcome));
  } else {
    context.say(suspension_text(options, outcome, context.out().width()));
  }
  return ExitCode::done;
}

Run add_suspend(CommandSyntax& syntax) {
  auto options = std::make_shared<SuspendOptions>();
  syntax
      .texts("ACCOUNT", options->accounts,
             "name an account by id, email or login (or by id:7, email:ADDRESS, login:NAME); - reads "
             "names from stdin")
      .required();
  syntax.flag("--undo", options->undo, "lift the suspension");
  syntax.flag("--replay", options->replay, "with --undo, emit skipped tokens that are still due");
  syntax.text("--reason TEXT", options->reason, "record TEXT as the reason");
  return [options](Context& context) { return run_suspend(*options, context); };
}

}  // namespace

const Command suspend_command{
    "suspend", "suspend accounts, or lift their suspension",
    "Examples:\n"
    "  mailroom suspend user1@mail.example --reason 'reported for abuse'\n"
    "  mailroom suspend --undo --replay user1    emit skipped tokens too\n"
    "  mailroom suspend - < accounts.txt         suspend all of them or none\n",
    add_suspend,
    "Suspends all named accounts, or none on an error. Their pending tokens are then skipped and counted. "
    "--undo lifts the suspension: an account that was never activated becomes provisioned again, any other "
    "becomes active. Tokens that were skipped meanwhile are not emitted automatically; --replay emits those "
    "that are still due. Running the command twice has the same effect as running it once.\n\n"
    "Every suspension is recorded with its actor and reason, including one by an application."};

}  // namespace mailroom::cmd
