// Finds all tokens by their secrets in one statement, and then the batches that held them.

#include "accounts/token_lookup.hpp"

#include "base/encoded_text.hpp"
#include "db/values.hpp"
#include "queue/batch_lookup.hpp"

namespace mailroom::accounts {
namespace {

TokenRecord read_record(const pqxx::row& row) {
  TokenRecord record{.id = row[1].as<std::int64_t>(),
                     .state = row[2].c_str(),
                     .created_at = db::moment_in<std::chrono::seconds>(row[3]),
                     .expires_at = db::moment_in<std::chrono::seconds>(row[4]),
                     .consumed_at = db::optional_moment_in<std::chrono::seconds>(row[5]),
                     .now = db::moment_in<std::chrono::seconds>(row[9])};
  if (!row[6].is_null())
    record.account =
        AccountRecord{.id = row[6].as<std::int64_t>(), .login = row[7].c_str(), .status = row[8].c_str()};
  if (!row[10].is_null()) record.message = TokenMessage{.id = row[10].as<std::int64_t>()};
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
SELECT t.id, (m.recipients || m.cc || m.bcc)[t.recipient], m.reference
FROM tokens t JOIN mailroom_messages m ON m.id = t.message WHERE t.id = ANY ($1::bigint[]))",
                                        db::array_text(ids))) {
    for (auto& token : tokens) {
      if (!token || token->id != row[0].as<std::int64_t>()) continue;
      token->message->recipient = row[1].c_str();
      token->message->reference = row[2].c_str();
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
SELECT n.place, t.id, mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now),
  t.created_at, t.expires_at, t.consumed_at, a.id, a.login, a.status, clock.now, t.message
FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now) clock,
  unnest($1::text[], $2::token_action[]) WITH ORDINALITY n (secret, action, place)
  JOIN tokens t ON t.secret = decode(n.secret, 'hex') AND t.action = n.action LEFT JOIN accounts a ON a.id = t.account)",
                                   db::array_text(secrets), db::array_text(actions));
  for (const auto& row : rows)
    tokens[row[0].as<std::size_t>() - 1] = read_record(row);
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
  return rows[0][0].as<std::int64_t>();
}

}  // namespace mailroom::accounts
