#include "accounts/simulated_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "accounts/account_dealer.hpp"
#include "accounts/simulated_account.hpp"
#include "db/array_text.hpp"

namespace mailroom {
namespace {

/// An array as PostgreSQL reads it, bound as text: libpqxx 6 binds no vectors.
std::vector<IssuedToken> issued_tokens(const pqxx::result& rows) {
  std::vector<IssuedToken> tokens;
  for (const auto& row : rows) {
    tokens.push_back({row[0].as<std::int64_t>(), row[1].as<std::int64_t>(), row[2].as<std::int64_t>()});
  }
  return tokens;
}

}  // namespace

SimulatedRows::SimulatedRows(Connection& connection, std::uint64_t seed)
    : connection_(connection), seed_(seed), prefix_(simulated_prefix(seed)) {
  connection_.prepare("simulate_create",
                      "INSERT INTO accounts (login, email) "
                      "SELECT $1::text || n, $1::text || n || $2::text "
                      "FROM generate_series($3::bigint, $4::bigint) n "
                      "RETURNING id, substr(login, length($1::text) + 1)::bigint");
  connection_.prepare("simulate_activation_tokens",
                      "SELECT id, account, expires_at - floor(extract(epoch FROM clock_timestamp()))::bigint "
                      "FROM tokens WHERE account = ANY ($1::bigint[]) AND action = 'activation'");
  connection_.prepare("simulate_consume",
                      "UPDATE tokens SET consumed_at = floor(extract(epoch FROM clock_timestamp()))::bigint "
                      "WHERE id = ANY ($1::bigint[]) AND consumed_at IS NULL "
                      "AND expires_at > floor(extract(epoch FROM clock_timestamp()))::bigint RETURNING id");
  connection_.prepare(
      "simulate_recover",
      "INSERT INTO tokens (account, action) "
      "SELECT account, 'password_recovery'::token_action FROM unnest($1::bigint[]) account "
      "RETURNING id, account, expires_at - floor(extract(epoch FROM clock_timestamp()))::bigint");
  connection_.prepare("simulate_suspend",
                      "UPDATE accounts SET status = 'suspended' "
                      "WHERE id = ANY ($1::bigint[]) AND status <> 'suspended'");
}

std::vector<std::int64_t> SimulatedRows::create(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(last - first + 1));
  try {
    // The numbers come back too: nothing promises that rows are returned in the order of the series.
    const auto rows =
        connection_.run_prepared("simulate_create", prefix_, std::string(simulated_email_end), first, last);
    for (const auto& row : rows) {
      ids.at(static_cast<std::size_t>(row[1].as<std::int64_t>() - first)) = row[0].as<std::int64_t>();
    }
  } catch (const DatabaseError& error) {
    if (error.sqlstate() != "23505") throw;
    throw Error(
        ExitCode::failed, fmt::format("accounts of seed {} exist already", seed_),
        fmt::format("choose another --seed, or remove them with: mailroom simulate --clean-up --seed {}",
                    seed_));
  }
  return ids;
}

std::vector<IssuedToken> SimulatedRows::activation_tokens(const std::vector<std::int64_t>& accounts) {
  return issued_tokens(connection_.run_prepared("simulate_activation_tokens", array_text(accounts)));
}

std::vector<std::int64_t> SimulatedRows::consume(const std::vector<std::int64_t>& tokens) {
  std::vector<std::int64_t> consumed;
  for (const auto& row : connection_.run_prepared("simulate_consume", array_text(tokens))) {
    consumed.push_back(row[0].as<std::int64_t>());
  }
  return consumed;
}

std::vector<IssuedToken> SimulatedRows::recover(const std::vector<std::int64_t>& accounts) {
  return issued_tokens(connection_.run_prepared("simulate_recover", array_text(accounts)));
}

std::int64_t SimulatedRows::suspend(const std::vector<std::int64_t>& accounts) {
  return static_cast<std::int64_t>(
      connection_.run_prepared("simulate_suspend", array_text(accounts)).affected_rows());
}

std::int64_t remove_simulated_accounts(Connection& connection, const std::string& login_prefix,
                                       const std::function<bool(std::int64_t)>& go_on) {
  const auto top = connection.run("SELECT coalesce(max(id), 0) FROM accounts")[0][0].as<std::int64_t>();
  std::int64_t removed = 0;
  std::int64_t passed = 0;
  do {
    // By id from where the last step ended, so that no step reads again what an earlier one has removed.
    const auto rows = connection.run(
        "WITH step AS (SELECT id FROM accounts WHERE id > $1::bigint AND id <= $2::bigint "
        "AND starts_with(login, $3::text) AND right(email, length($4::text)) = $4::text "
        "ORDER BY id LIMIT $5::bigint), "
        "gone AS (DELETE FROM accounts a USING step s WHERE a.id = s.id RETURNING a.id) "
        "SELECT (SELECT max(id) FROM step), (SELECT count(*) FROM gone)",
        passed, top, login_prefix, std::string(simulated_email_end), simulation_step);
    if (rows[0][0].is_null()) return removed;
    passed = rows[0][0].as<std::int64_t>();
    removed += rows[0][1].as<std::int64_t>();
  } while (go_on(removed));
  return removed;
}

}  // namespace mailroom
