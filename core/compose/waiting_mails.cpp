// Reads waiting tokens as a sender's fetch would, and writes their mails with a token that verifies nowhere.

#include "compose/waiting_mails.hpp"

#include <map>

#include "claim/message_rows.hpp"
#include "claim/recipient_counts.hpp"
#include "crypto/token.hpp"

namespace mailroom::compose {
namespace {

/// The tokens that wait in queue $1, with what a sender's fetch reads of each. $2: how many, $3: the action
/// of which only the newest token of an account is mailed.
const std::string waiting_sql = R"(
WITH queue AS MATERIALIZED (SELECT *, mailroom_queue_actions($1) AS actions FROM mailroom_queue_state($1)),
waiting AS MATERIALIZED (
  SELECT t.id FROM queue, tokens t WHERE t.id > queue.cursor AND mailroom_takes(queue.actions, t.action)
  UNION
  SELECT t.id FROM queue JOIN mailroom_gaps g ON g.id = ANY (queue.gap_ids), unnest(g.ids) r, tokens t
  WHERE t.id >= lower(r) AND t.id < upper(r) AND mailroom_takes(queue.actions, t.action)
  UNION
  SELECT d.token FROM mailroom_deliveries d WHERE d.queue = $1 AND d.not_before <= (SELECT clock_timestamp()))
SELECT t.id, t.action, t.code, coalesce(mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]), a.email) AS email,
  coalesce(a.login, '') AS login, t.created_at, t.expires_at,
  mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                       floor(extract(epoch FROM clock_timestamp()))::bigint) AS state,
  coalesce(d.attempts, 0) AS attempts, coalesce(d.unknowns, 0) AS unknowns,
  CASE WHEN t.action = $3::token_action THEN (
    SELECT max(n.id) FROM tokens n
    WHERE n.account = t.account AND n.id > t.id AND n.action = t.action AND n.consumed_at IS NULL
      AND n.expires_at > floor(extract(epoch FROM clock_timestamp()))) END AS newer,
  (SELECT count(*) FROM waiting) AS total, t.message, t.recipient
FROM (SELECT id FROM waiting ORDER BY id LIMIT $2) w JOIN tokens t ON t.id = w.id LEFT JOIN accounts a ON a.id = t.account
LEFT JOIN mailroom_messages m ON m.id = t.message
LEFT JOIN mailroom_deliveries d ON d.queue = $1 AND d.token = t.id
ORDER BY t.id)";

/// A token of the right size that verifies nowhere: it never leaves this function.
std::string stand_in(const queue::Action& action) {
  return std::string(action.path.empty() ? 0 : crypto::token_size, 'x');
}

/// The views are of `row`.
claim::TokenRow token_of(const db::Row& row, queue::KnownActions& actions) {
  return {.id = row.number("id"),
          .action = actions.require(row.view("action")),
          .secret = std::nullopt,
          .code = row.view("code"),
          .expires_at = row.number("expires_at"),
          .email = row.view("email"),
          .login = row.view("login"),
          .state = claim::parse_token_state(row.view("state")),
          .created_at = row.number("created_at"),
          .attempts = row.number<int>("attempts"),
          .unknowns = row.number<int>("unknowns"),
          .newer = row.optional<std::int64_t>("newer"),
          .message = row.optional<std::int64_t>("message"),
          .recipient = row.optional<int>("recipient").value_or(0)};
}

WaitingMail preview(const std::string& queue, const claim::TokenRow& token, const MailProfiles& profiles,
                    const delivery::DeliveryPolicy& policy) {
  WaitingMail mail{.token = token.id, .action = token.action->name, .email = std::string(token.email)};
  auto history = delivery::history_of(token, 0);
  mail.not_mailed = delivery::outcome_without_attempt(history, policy);
  if (mail.not_mailed) return mail;
  if (auto withheld = profiles.withheld(token)) {
    mail.not_mailed = delivery::withheld_outcome(history, withheld->state, std::move(withheld->reason));
    return mail;
  }
  const auto& writer = *profiles.find(token)->writer;
  const auto written = writer.write(queue, token, stand_in(*token.action));
  if (const auto* refusal = std::get_if<mail::Refusal>(&written)) {
    history.defect = refusal->reason.c_str();
    mail.not_mailed = delivery::outcome_without_attempt(history, policy);
  } else {
    mail.subject = std::get<WrittenMail>(written).subject;
    if (const auto address = writer.redirected(token.email)) mail.redirected_to = address->text();
  }
  return mail;
}

}  // namespace

WaitingMails read_waiting_mails(db::Connection& connection, const std::string& queue,
                                const MailProfiles& profiles, const delivery::DeliveryPolicy& policy,
                                int limit) {
  const auto rows = connection.run(waiting_sql, queue, limit, queue::Actions::of_recovery().name);
  queue::KnownActions actions(connection);
  std::vector<claim::TokenRow> tokens;
  for (const auto& row : rows)
    tokens.push_back(token_of(row, actions));
  claim::RecipientCounts counts;
  if (policy.per_recipient) counts.read(connection, queue, *policy.per_recipient, tokens);
  WaitingMails mails;
  if (!rows.empty()) mails.total = rows[0].number("total");
  std::map<std::string_view, int> mailed;
  claim::MessageReader messages;
  const auto id_of = [&](std::size_t i) { return tokens[i].message; };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& token = tokens[i];
    counts.set(token);
    token.mailed += mailed[token.counted_as];
    auto* message = token.message
                        ? messages.get(connection, *token.message,
                                       [&] { return claim::messages_ahead(i, tokens.size(), id_of); })
                        : nullptr;
    if (message != nullptr) claim::set_message(token, *message);
    mails.first.push_back(preview(queue, token, profiles, policy));
    if (!mails.first.back().not_mailed) ++mailed[token.counted_as];
  }
  return mails;
}

}  // namespace mailroom::compose
