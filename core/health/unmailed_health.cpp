// The rules about what nobody is mailed for: messages and accounts without a token, and actions that no queue
// takes.

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "health/queue_health.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {

std::vector<QueueFinding> judge_lost_messages(const status::LostMessages& lost, const std::string& schema) {
  std::vector<QueueFinding> found;
  if (lost.messages > 0) {
    std::vector<std::string> statements;
    for (const auto& fix : status::issue_lost_messages(lost, schema))
      statements.push_back(fix);
    found.push_back(
        {Severity::failure, "messages_without_token",
         fmt::format("{} of the last day {} no token, so nobody mails {}: {}",
                     counted(lost.messages, "message"), lost.messages == 1 ? "has" : "have",
                     lost.messages == 1 ? "it" : "them", status::messages_text(lost.newest, lost.messages)),
         status::Fix(status::FixKind::issue_tokens, joined(statements, "\n")),
         "run the fix in a new session, once after_message_insert fires again; the consumers mail the messages then. "
         "mailroom message show N shows one, and mailroom message cancel message:N ends it instead"});
  }
  if (lost.unfit == 0) return found;
  found.push_back(
      {Severity::warning,
       "messages_unfit",
       fmt::format("{} of the last day {} no token, and would have been refused: {}",
                   counted(lost.unfit, "message"), lost.unfit == 1 ? "has" : "have",
                   status::messages_text(lost.newest_unfit, lost.unfit)),
       {},
       "the action or the account takes no such message; mailroom message cancel message:N ends one"});
  return found;
}

std::optional<QueueFinding> judge_accounts_without_token(std::int64_t accounts, const std::string& schema) {
  if (accounts == 0) return std::nullopt;
  return QueueFinding{
      Severity::failure, "accounts_without_token",
      fmt::format("{} of the last day {} no token, so nobody mails {}", counted(accounts, "account"),
                  accounts == 1 ? "has" : "have", accounts == 1 ? "it" : "them"),
      status::issue_account_tokens(schema),
      "run the fix in a new session, once after_account_insert fires again; the consumers mail the accounts then. If they were "
      "imported to be mailed by nobody, give them the status active"};
}

QueueFinding judge_untaken(const status::UntakenAction& action) {
  const auto& name = action.name;
  QueueFinding finding{Severity::warning, "untaken",
                       fmt::format("no queue takes {} tokens: they are not emitted", name)};
  const bool waits = action.dropped_at && action.tokens > 0;
  if (waits) {
    finding.severity = Severity::failure;
    finding.text =
        fmt::format("no queue takes {} tokens: {}, since their queue was dropped", name,
                    action.tokens == 1 ? std::string("1 waits and is not emitted")
                                       : with_thousands(action.tokens) + " wait and are not emitted");
  }
  if (action.has_namesake) {
    finding.hint = "mailroom queue set --help says how a queue takes further actions";
    return finding;
  }
  // Otherwise another queue may have mailed those that are there.
  const auto from = waits ? " --from " + moment_text(*action.dropped_at) : std::string();
  finding.fix = status::Fix(status::FixKind::create_queue,
                            fmt::format("mailroom queue create {0} --action {0}{1}", name, from));
  return finding;
}

}  // namespace mailroom::health
