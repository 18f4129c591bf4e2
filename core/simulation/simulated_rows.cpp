// The SQL of each write, and how to find out after a reconnect whether it was committed.

#include "simulation/simulated_rows.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "db/values.hpp"
#include "queue/action.hpp"

namespace mailroom {
namespace {

using Ids = SimulatedRows::Ids;

/// Reads rows of (id, account, seconds left).
std::vector<IssuedToken> issued_tokens(const pqxx::result& rows) {
  std::vector<IssuedToken> tokens;
  for (const auto& row : rows) {
    tokens.push_back({row[0].as<std::int64_t>(), row[1].as<std::int64_t>(), row[2].as<std::int64_t>()});
  }
  return tokens;
}

Ids sorted_ids(const pqxx::result& rows) {
  Ids ids;
  for (const auto& row : rows)
    ids.push_back(row[0].as<std::int64_t>());
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// Returns the ids of rows of (id, number), ordered by number from `first` on.
Ids ids_by_number(const pqxx::result& rows, std::int64_t first) {
  Ids ids(static_cast<std::size_t>(rows.size()));
  for (const auto& row : rows)
    ids.at(static_cast<std::size_t>(row[1].as<std::int64_t>() - first)) = row[0].as<std::int64_t>();
  return ids;
}

}  // namespace

void SimulatedRows::prepare(Connection& session) {
  session.prepare("simulate_create", R"(
INSERT INTO accounts (login, email)
SELECT $1::text || n, $1::text || n || $2::text
FROM generate_series($3::bigint, $4::bigint) n
RETURNING id, substr(login, length($1::text) + 1)::bigint)");
  session.prepare("simulate_tokens", R"(
SELECT id, account, expires_at - floor(extract(epoch FROM clock_timestamp()))::bigint FROM tokens
WHERE account = ANY ($1::bigint[]) AND action = $2::token_action)");
  session.prepare("simulate_consume", R"(
UPDATE tokens SET consumed_at = floor(extract(epoch FROM clock_timestamp()))::bigint
WHERE id = ANY ($1::bigint[]) AND consumed_at IS NULL
  AND expires_at > floor(extract(epoch FROM clock_timestamp()))::bigint
RETURNING id)");
  session.prepare("simulate_recover", R"(
INSERT INTO tokens (account, action)
SELECT account, $2::token_action FROM unnest($1::bigint[]) account
RETURNING id, account, expires_at - floor(extract(epoch FROM clock_timestamp()))::bigint)");
  session.prepare("simulate_suspend", R"(
UPDATE accounts SET status = 'suspended'
WHERE id = ANY ($1::bigint[]) AND status <> 'suspended')");
}

SimulatedRows::SimulatedRows(LastingConnection connection, std::uint64_t seed)
    : connection_(std::move(connection)), seed_(seed), prefix_(simulated_prefix(seed)) {}

Ids SimulatedRows::create(std::int64_t first, std::int64_t last) {
  return connection_.run([&](Connection& session) { return insert(session, first, last); },
                         [&](Connection& session) {
                           const auto kept = session.run(R"(
SELECT a.id, n FROM generate_series($2::bigint, $3::bigint) n
JOIN accounts a ON a.login = $1::text || n)",
                                                         prefix_, first, last);
                           return kept.empty() ? insert(session, first, last) : ids_by_number(kept, first);
                         });
}

Ids SimulatedRows::insert(Connection& session, std::int64_t first, std::int64_t last) {
  try {
    // The numbers are returned too, because RETURNING does not guarantee the order of the series.
    return ids_by_number(
        session.run_prepared("simulate_create", prefix_, std::string(simulated_email_end), first, last),
        first);
  } catch (const DatabaseError& error) {
    if (error.sqlstate() != sqlstate::unique_violation) throw;
    throw Error(
        ExitCode::failed, fmt::format("accounts of seed {} already exist", seed_),
        fmt::format("choose another --seed, or remove them with: mailroom simulate --clean-up --seed {}",
                    seed_));
  }
}

std::vector<IssuedToken> SimulatedRows::activation_tokens(const Ids& accounts) {
  return connection_.run([&](Connection& session) {
    return issued_tokens(
        session.run_prepared("simulate_tokens", array_text(accounts), Actions::of_sign_up().name));
  });
}

Ids SimulatedRows::consume(const Ids& tokens) {
  const auto ids = array_text(tokens);
  return connection_.run(
      [&](Connection& session) { return sorted_ids(session.run_prepared("simulate_consume", ids)); },
      [&](Connection& session) {
        session.run_prepared("simulate_consume", ids);
        return sorted_ids(session.run(
            "SELECT id FROM tokens WHERE id = ANY ($1::bigint[]) AND consumed_at IS NOT NULL", ids));
      });
}

std::vector<IssuedToken> SimulatedRows::recover(const Ids& accounts) {
  const auto ids = array_text(accounts);
  const auto recover = [&](Connection& session) {
    return issued_tokens(session.run_prepared("simulate_recover", ids, Actions::of_recovery().name));
  };
  return connection_.run(recover, [&](Connection& session) {
    auto kept = issued_tokens(session.run_prepared("simulate_tokens", ids, Actions::of_recovery().name));
    return kept.empty() ? recover(session) : kept;
  });
}

std::int64_t SimulatedRows::suspend(const Ids& accounts) {
  connection_.run(
      [&](Connection& session) { return session.run_prepared("simulate_suspend", array_text(accounts)); });
  return static_cast<std::int64_t>(accounts.size());
}

std::int64_t remove_simulated_accounts(LastingConnection& connection, const std::string& login_prefix,
                                       const std::function<bool(std::int64_t)>& go_on) {
  const auto top = connection.run([](Connection& session) {
    return session.run("SELECT coalesce(max(id), 0) FROM accounts")[0][0].as<std::int64_t>();
  });
  std::int64_t removed = 0;
  std::int64_t passed = 0;
  do {
    // By id from the end of the last step, so that no step rereads rows that an earlier step removed.
    const auto rows = connection.run([&](Connection& session) {
      return session.run(R"(
WITH step AS (
  SELECT id FROM accounts
  WHERE id > $1::bigint AND id <= $2::bigint
    AND starts_with(login, $3::text) AND right(email, length($4::text)) = $4::text
  ORDER BY id
  LIMIT $5::bigint),
gone AS (DELETE FROM accounts a USING step s WHERE a.id = s.id RETURNING a.id)
SELECT (SELECT max(id) FROM step), (SELECT count(*) FROM gone))",
                         passed, top, login_prefix, std::string(simulated_email_end), simulation_step);
    });
    if (rows[0][0].is_null()) return removed;
    passed = rows[0][0].as<std::int64_t>();
    removed += rows[0][1].as<std::int64_t>();
  } while (go_on(removed));
  return removed;
}

std::string simulated_prefix(std::uint64_t seed) {
  return fmt::format("{}{}-", simulated_login_start, seed);
}

TimePoint due_at(TimePoint start, std::int64_t n, double rate) {
  // A century is longer than any run, and far from the end of the clock's range.
  constexpr double century = 100.0 * 365 * 24 * 3600;
  const std::chrono::duration<double> offset(std::min(static_cast<double>(n - 1) / rate, century));
  return start + std::chrono::duration_cast<TimePoint::duration>(offset);
}

AccountPlan AccountPlanner::next() {
  // Always draws three times: the share of one kind must not shift the draws for another.
  const bool activates = draw(shares_.activate);
  const bool recovers = draw(shares_.recover);
  const bool suspends = draw(shares_.suspend);
  return {.activates = activates, .recovers = activates && recovers, .suspends = suspends};
}

bool AccountPlanner::draw(double percent) {
  // The standard specifies the generator's output, but not that of the distributions. The upper 53 bits give
  // a fraction below 1 without rounding.
  const double fraction = static_cast<double>(generator_() >> 11U) * 0x1p-53;
  return fraction < percent / 100.0;
}

}  // namespace mailroom
