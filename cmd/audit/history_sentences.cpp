// What a history says before its events: a sentence for the batch, the account, each message and each token.

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/message/message_report.hpp"

namespace mailroom::cmd {
namespace {

std::string account_text(const audit::History& history) {
  const auto& account = history.account;
  if (!account) return fmt::format("account {}: no longer in the database", history.account_id);
  return fmt::format("account {} ({}, {}): {}", account->id, shown_text(account->login),
                     shown_text(account->email), shown_text(account->status));
}

/// `accepted`, `scheduled for 2026-11-21T09:30:15Z`
std::string message_state(const messages::MessageSummary& summary) {
  if (summary.is_only("no_token")) return "it has no token, since its trigger did not fire";
  const auto text = states_text(summary);
  if (!summary.send_after || *summary.send_after <= summary.created_at) return text;
  return fmt::format("{}{} for {}", text, summary.is_only("scheduled") ? "" : ", was scheduled",
                     moment_text(*summary.send_after));
}

/// Says why an account is shown that has another address.
std::string former_address_text(const audit::History& history) {
  if (history.former_address.empty()) return "";
  const auto whose =
      history.is_of_account ? fmt::format("account {}", history.account_id) : std::string("these messages");
  return fmt::format("no account has the address {} now; mails of {} went to it",
                     shown_text(history.former_address), whose);
}

/// Of an account to which nothing can be mailed.
std::string no_token_text(const audit::History& history) {
  if (!history.is_of_account || !history.account || history.tokens_total > 0) return "";
  return history.account->status == "provisioned"
             ? fmt::format(
                   "account {} has no token, so nobody mails it: the trigger after_account_insert, which makes "
                   "it, did not fire, or the token was deleted",
                   history.account_id)
             : fmt::format(
                   "account {} has no token now: a row of tokens, which the application inserts, makes one",
                   history.account_id);
}

/// `message 17, receipt to ada@example.org (order:17), asked for 2026-11-21T09:30:15Z by shop: accepted`
std::string message_text(const messages::MessageSummary& summary) {
  return fmt::format("message {}{}{}, asked for {} by {}: {}", summary.id, content_and_recipient(summary),
                     summary.reference.empty() ? "" : " (" + summary.reference + ")",
                     moment_text(summary.created_at), summary.enqueued_by, message_state(summary));
}

}  // namespace

std::vector<HistorySentence> history_sentences(const audit::History& history) {
  std::vector<HistorySentence> sentences;
  const auto add = [&](const std::string& text, const std::string& trace = {}) {
    if (!text.empty()) sentences.push_back({.text = shown_text(text), .trace = trace});
  };
  if (history.batch) add(batch_text(*history.batch));
  // If a token was requested, its sentence precedes that of its account.
  add(former_address_text(history));
  if (history.is_of_account) add(account_text(history));
  add(no_token_text(history));
  for (const auto& summary : history.messages)
    add(message_text(summary));
  for (const auto& report : history.tokens)
    add(status_text(report, history.now), report.token.trace_id);
  const auto more = history.tokens_total - static_cast<std::int64_t>(history.tokens.size());
  if (more > 0) add(fmt::format("and {} more tokens", with_thousands(more)));
  if (!history.is_of_account && history.account_id != 0) add(account_text(history));
  return sentences;
}

}  // namespace mailroom::cmd
