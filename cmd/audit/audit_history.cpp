// Finds who or what NAME means, also by the record of mails, and reads its history with the next steps.

#include "cmd/audit/audit_history.hpp"

#include <fmt/format.h>
#include <set>

#include "accounts/account_lookup.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/selection/named_tokens.hpp"
#include "db/search_path.hpp"
#include "mail/address.hpp"
#include "messages/message_search.hpp"
#include "queue/action.hpp"
#include "suppression/suppressions.hpp"

namespace mailroom::cmd {
namespace {

/// Of the addresses of one history.
constexpr std::int64_t most_suppressions = 5;

/// By the record of mails: an account may have had the address before. Throws `refusal` if there is none.
audit::History read_former_history(db::Connection& connection, const audit::AuditRequest& request,
                                   const Error& refusal) {
  const auto& address = request.address;
  const bool is_spelled_otherwise =
      address.empty() || !accounts::accounts_in_other_case(connection, address).empty();
  const auto found =
      is_spelled_otherwise ? accounts::MailedTo{} : accounts::find_mailed_to(connection, address);
  if (found.accounts.size() > 1) {
    throw Error(ExitCode::usage,
                fmt::format("mails of {} accounts went to '{}': {}", found.accounts.size(),
                            shown_text(address), joined(found.accounts, ", ")),
                fmt::format("choose one with id:{}", found.accounts.front()));
  }
  if (found.accounts.empty() && found.messages.empty()) {
    throw Error(refusal.code(),
                refusal.what() + std::string(", and no message has this address or reference"),
                found.is_complete ? refusal.hint()
                                  : "the record of mails is too long to be searched; give an id or a login");
  }
  auto history = found.accounts.empty() ? audit::read_message_history(connection, found.messages, request)
                                        : audit::read_account_history(connection, found.accounts.front(),
                                                                      found.messages, request);
  history.former_address = address;
  return history;
}

/// Names the accounts whose address differs from that of messages only in the case of letters.
void add_accounts_in_other_case(db::Connection& connection, const std::string& address,
                                audit::History& history) {
  if (address.empty()) return;
  for (const auto& account : accounts::accounts_in_other_case(connection, address)) {
    history.next.push_back({.text = fmt::format("account {} has this address as {}; to see its tokens",
                                                account.id, account.email),
                            .command = fmt::format("mailroom audit id:{}", account.id)});
  }
}

/// NAME is an account, and may be the address of messages too; without an account it is an address or a
/// reference.
audit::History read_named_history(db::Connection& connection, const std::string& name,
                                  audit::AuditRequest request) {
  const auto text = mail::address_of_mailbox(name.substr(name.starts_with("email:") ? 6 : 0));
  if (text.find('@') != std::string::npos) request.address = text;
  auto messages = accounts::parse_id(name)
                      ? std::vector<std::int64_t>()
                      : messages::find_messages(connection, text, most_messages_of_history + 1);
  const bool has_older = static_cast<std::int64_t>(messages.size()) > most_messages_of_history;
  if (has_older) messages.pop_back();
  const auto marked = [&](audit::History history) {
    history.has_older_messages = has_older;
    return history;
  };
  try {
    return marked(
        audit::read_account_history(connection, named_account_id(connection, name), messages, request));
  } catch (const Error& error) {
    if (error.code() != ExitCode::unusable || accounts::parse_id(name)) throw;
    if (messages.empty()) return read_former_history(connection, request, error);
    auto history = marked(audit::read_message_history(connection, messages, request));
    add_accounts_in_other_case(connection, request.address, history);
    return history;
  }
}

/// The addresses that the history is about, as they are suppressed.
std::vector<std::string> suppressible_addresses(const audit::History& history) {
  std::set<std::string> addresses;
  const auto add = [&](const std::string& mailbox) {
    const auto address = mail::address_of_mailbox(mailbox);
    if (address.find('@') == std::string::npos) return;
    try {
      addresses.insert(suppression::suppressed_form(address));
    } catch (const Error&) {
      // No address can be mailed in this form, so none is suppressed.
    }
  };
  if (history.account) add(history.account->email);
  add(history.former_address);
  for (const auto& report : history.tokens)
    add(token_address(report));
  return {addresses.begin(), addresses.end()};
}

/// Says which of its addresses get no messages, and how that ends.
void add_suppressed(db::Connection& connection, audit::History& history) {
  const auto addresses = suppressible_addresses(history);
  const bool may_read =
      connection.run("SELECT has_table_privilege('mailroom_suppressions', 'SELECT')").value<bool>();
  if (addresses.empty() || !may_read) return;
  for (const auto& each : suppression::list_suppressions(connection, addresses, most_suppressions)) {
    history.next.push_back(
        {.text = fmt::format("{} gets no messages{} since {} ({} {}){}; to let it get them again",
                             shown_text(each.address), each.topic.empty() ? "" : " of " + each.topic,
                             moment_text(each.added_at), each.kind, shown_text(each.reason),
                             each.topic.empty() ? ", but security mail" : ""),
         .command = "mailroom suppression remove " + shell_word(each.address) +
                    (each.topic.empty() ? "" : " --topic " + each.topic)});
  }
}

/// Of an account that waits for its activation, and to which nothing can be mailed.
void add_missing_token(db::Connection& connection, audit::History& history) {
  const bool waits = history.is_of_account && history.account && history.account->status == "provisioned";
  if (!waits || history.tokens_total > 0) return;
  history.next.push_back(
      {.text = "to make its token, in psql",
       .command = db::in_schema(fmt::format("INSERT INTO @.tokens (account, action) VALUES ({}, '{}');",
                                            history.account_id, queue::Actions::of_sign_up().name),
                                db::quoted_schema(connection))});
}

}  // namespace

std::int64_t named_account_id(db::Connection& connection, const std::string& name) {
  try {
    return accounts::find_accounts(connection, {name}).front().id;
  } catch (const Error& error) {
    const auto id = accounts::parse_id(std::string_view(name).substr(name.starts_with("id:") ? 3 : 0));
    if (error.code() != ExitCode::unusable || !id) throw;
    return *id;
  }
}

audit::History read_subject_history(db::Connection& connection, const accounts::NamedSubject& named,
                                    const audit::AuditRequest& request) {
  const auto subject = with_message_found(connection, named);
  switch (subject.kind) {
    case accounts::NamedSubject::Kind::account:
      return read_named_history(connection, subject.name, request);
    case accounts::NamedSubject::Kind::message:
      return audit::read_message_history(connection, {subject.id}, request);
    case accounts::NamedSubject::Kind::batch:
      return audit::read_batch_history(connection, subject.id, request);
    default:
      return audit::read_token_history(connection, accounts::token_id_of(connection, subject), request);
  }
}

void add_steps(db::Connection& connection, audit::History& history) {
  add_missing_token(connection, history);
  add_suppressed(connection, history);
}

}  // namespace mailroom::cmd
