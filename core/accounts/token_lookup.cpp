#include "accounts/token_lookup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mailroom {
namespace {

std::string bytea_text(const Secret& secret) {
  return fmt::format("\\x{:02x}", fmt::join(secret, ""));
}

std::vector<TokenEmission> find_emissions(Connection& connection, std::int64_t token,
                                          std::int64_t created_at) {
  // Nothing is claimed before it exists, give or take an hour of two clocks; the condition lets the small
  // index on claimed_at skip what is older.
  const auto rows = connection.run(
      "SELECT id, job_type, to_char(emitted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), "
      "attempts "
      "FROM mailroom_batches WHERE claimed_at >= to_timestamp($2::bigint) - interval '1 hour' AND ids @> "
      "$1::bigint "
      "ORDER BY id",
      token, created_at);
  std::vector<TokenEmission> emissions;
  for (const auto& row : rows) {
    TokenEmission emission{
        .batch = row[0].as<std::int64_t>(), .queue = row[1].c_str(), .attempts = row[3].as<int>()};
    if (!row[2].is_null()) emission.emitted_at = row[2].c_str();
    emissions.push_back(std::move(emission));
  }
  return emissions;
}

}  // namespace

std::optional<TokenRecord> find_token(Connection& connection, const Secret& secret, Action action) {
  const auto rows = connection.run(
      "SELECT t.id, mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now), "
      "t.created_at, t.expires_at, t.consumed_at, a.id, a.login, a.status, clock.now "
      "FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now) clock, "
      "tokens t JOIN accounts a ON a.id = t.account WHERE t.secret = $1::bytea AND t.action = "
      "$2::token_action",
      bytea_text(secret), std::string(action_name(action)));
  if (rows.empty()) return std::nullopt;
  const auto& row = rows[0];
  TokenRecord record{.id = row[0].as<std::int64_t>(),
                     .state = row[1].c_str(),
                     .created_at = row[2].as<std::int64_t>(),
                     .expires_at = row[3].as<std::int64_t>(),
                     .account = row[5].as<std::int64_t>(),
                     .login = row[6].c_str(),
                     .status = row[7].c_str(),
                     .now = row[8].as<std::int64_t>()};
  if (!row[4].is_null()) record.consumed_at = row[4].as<std::int64_t>();
  record.emissions = find_emissions(connection, record.id, record.created_at);
  return record;
}

}  // namespace mailroom
