#include "accounts/token_lookup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "db/time_sql.hpp"
#include "queue/batch_lookup.hpp"

namespace mailroom {
namespace {

std::string bytea_text(const Secret& secret) {
  return fmt::format("\\x{:02x}", fmt::join(secret, ""));
}

std::vector<TokenEmission> find_emissions(Connection& connection, const TokenRecord& token) {
  const auto batches = connection.alone([&](pqxx::transaction_base& transaction) {
    auto life = token_span(token.id, token.created_at, token.expires_at);
    life.made = token.created_at;
    return find_batches(transaction, {life});
  });
  std::vector<TokenEmission> emissions;
  for (const auto& batch : batches) {
    if (!contains(batch.tokens, token.id) || contains(batch.skipped_ids, token.id)) continue;
    emissions.push_back({.batch = batch.id,
                         .queue = batch.queue,
                         .emitted_at = batch.emitted_at,
                         .attempts = batch.attempts,
                         .is_certain = !contains(batch.unsure, token.id)});
  }
  return emissions;
}

}  // namespace

std::optional<TokenRecord> find_token(Connection& connection, const Secret& secret, Action action) {
  const auto rows = connection.run(R"(
SELECT t.id, mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now),
  t.created_at, t.expires_at, t.consumed_at, a.id, a.login, a.status, clock.now
FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now) clock,
  tokens t JOIN accounts a ON a.id = t.account
WHERE t.secret = $1::bytea AND t.action = $2::token_action)",
                                   bytea_text(secret), std::string(action_name(action)));
  if (rows.empty()) return std::nullopt;
  const auto& row = rows[0];
  TokenRecord record{.id = row[0].as<std::int64_t>(),
                     .state = row[1].c_str(),
                     .created_at = moment_in<std::chrono::seconds>(row[2]),
                     .expires_at = moment_in<std::chrono::seconds>(row[3]),
                     .consumed_at = optional_moment_in<std::chrono::seconds>(row[4]),
                     .account = row[5].as<std::int64_t>(),
                     .login = row[6].c_str(),
                     .status = row[7].c_str(),
                     .now = moment_in<std::chrono::seconds>(row[8])};
  record.emissions = find_emissions(connection, record);
  return record;
}

std::optional<std::int64_t> find_token_id(Connection& connection, const Secret& secret) {
  const auto rows = connection.run("SELECT id FROM tokens WHERE secret = $1::bytea", bytea_text(secret));
  if (rows.empty()) return std::nullopt;
  return rows[0][0].as<std::int64_t>();
}

}  // namespace mailroom
