// Finds all tokens by their secrets in one statement, and then the batches that held them.

#include "accounts/token_lookup.hpp"

#include "base/encoded_text.hpp"
#include "db/values.hpp"
#include "queue/batch_lookup.hpp"

namespace mailroom::accounts {
namespace {

TokenRecord read_record(const db::Row& row) {
  TokenRecord record{.id = row.number("id"),
                     .state = row.text("state"),
                     .created_at = row.moment<std::chrono::seconds>("created_at"),
                     .expires_at = row.moment<std::chrono::seconds>("expires_at"),
                     .consumed_at = row.optional_moment<std::chrono::seconds>("consumed_at"),
                     .now = row.moment<std::chrono::seconds>("now")};
  if (!row.is_null("account"))
    record.account =
        AccountRecord{.id = row.number("account"), .login = row.text("login"), .status = row.text("status")};
  if (!row.is_null("message")) record.message = TokenMessage{.id = row.number("message")};
  return record;
}

/// Reads messages by themselves: whoever verifies other tokens needs no right to read them.
void read_messages(db::Connection& connection, std::vector<std::optional<TokenRecord>>& tokens) {
  std::vector<std::int64_t> ids;
  for (const auto& token : tokens) {
    if (token && token->message) ids.push_back(token->id);
  }
  if (ids.empty()) return;
  for (const auto& row : connection.run(R"(
SELECT t.id, (m.recipients || m.cc || m.bcc)[t.recipient] AS recipient, m.reference
FROM tokens t JOIN mailroom_messages m ON m.id = t.message WHERE t.id = ANY ($1::bigint[]))",
                                        db::array_text(ids))) {
    for (auto& token : tokens) {
      if (!token || token->id != row.number("id")) continue;
      token->message->recipient = row.text("recipient");
      token->message->reference = row.text("reference");
    }
  }
}

void add_emission(TokenRecord& token, const queue::BatchRecord& batch) {
  if (!selection::contains(batch.tokens, token.id) || selection::contains(batch.skipped_ids, token.id))
    return;
  token.emissions.push_back({.batch = batch.id,
                             .queue = batch.queue,
                             .emitted_at = batch.emitted_at,
                             .attempts = batch.attempts,
                             .is_certain = !selection::contains(batch.unsure, token.id)});
}

void read_emissions(db::Connection& connection, std::vector<std::optional<TokenRecord>>& tokens) {
  std::vector<queue::TokenSpan> lives;
  for (const auto& token : tokens) {
    if (!token) continue;
    lives.push_back(queue::token_span(token->id, token->created_at, token->expires_at));
    lives.back().made = token->created_at;
  }
  if (lives.empty()) return;
  const auto batches = connection.alone(
      [&](pqxx::transaction_base& transaction) { return queue::find_batches(transaction, lives); });
  for (auto& token : tokens) {
    if (!token) continue;
    for (const auto& batch : batches)
      add_emission(*token, batch);
  }
}

}  // namespace

std::vector<std::optional<TokenRecord>> find_tokens(db::Connection& connection,
                                                    const std::vector<TokenName>& names,
                                                    bool with_emissions) {
  std::vector<std::string> secrets;
  std::vector<std::string> actions;
  for (const auto& name : names) {
    secrets.push_back(hex_text(name.secret));
    actions.push_back(name.action);
  }
  std::vector<std::optional<TokenRecord>> tokens(names.size());
  const auto rows = connection.run(R"(
SELECT n.place, t.id, mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now) AS state,
  t.created_at, t.expires_at, t.consumed_at, a.id AS account, a.login, a.status, clock.now, t.message
FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now) clock,
  unnest($1::text[], $2::token_action[]) WITH ORDINALITY n (secret, action, place)
  JOIN tokens t ON t.secret = decode(n.secret, 'hex') AND t.action = n.action LEFT JOIN accounts a ON a.id = t.account)",
                                   db::array_text(secrets), db::array_text(actions));
  for (const auto& row : rows)
    tokens[row.number<std::size_t>("place") - 1] = read_record(row);
  if (with_emissions) {
    read_messages(connection, tokens);
    read_emissions(connection, tokens);
  }
  return tokens;
}

std::optional<TokenRecord> find_token(db::Connection& connection, const crypto::Secret& secret,
                                      const std::string& action) {
  return find_tokens(connection, {{.secret = secret, .action = action}}, true).front();
}

std::optional<std::int64_t> find_token_id(db::Connection& connection, const crypto::Secret& secret) {
  const auto rows =
      connection.run("SELECT id FROM tokens WHERE secret = decode($1, 'hex')", hex_text(secret));
  if (rows.empty()) return std::nullopt;
  return rows.value<std::int64_t>();
}

}  // namespace mailroom::accounts
