// The SQL of each write. The accounts that a share selects follow from their numbers, which are in their
// logins.

#include "simulation/simulated_rows.hpp"

#include <cmath>
#include <fmt/format.h>

#include "queue/action.hpp"

namespace mailroom::simulation {
namespace {

constexpr const char* create_sql = R"(
INSERT INTO accounts (login, email)
SELECT $1::text || n, $1::text || n || $2::text FROM generate_series($3::bigint, $4::bigint) n)";

// Of $1, the tokens that people take; `place` is that of the account among those that activate.
constexpr const char* use_sql = R"(
WITH taken AS MATERIALIZED (
  SELECT t.id, t.account, t.action, floor(a.n * $5::float8 / 100) AS place,
    t.expires_at > floor(extract(epoch FROM clock_timestamp())) AS usable
  FROM unnest($1::int8multirange) r
  JOIN tokens t ON t.id >= lower(r) AND t.id < upper(r) AND t.consumed_at IS NULL
    AND t.action IN ($3::token_action, $4::token_action)
  JOIN (SELECT id, email, substring(login, '^' || $2::text || '([0-9]{1,9})$')::float8 AS n FROM accounts) a
    ON a.id = t.account AND right(a.email, length($7::text)) = $7::text
  WHERE floor(a.n * $5::float8 / 100) > floor((a.n - 1) * $5::float8 / 100)),
consumed AS (
  UPDATE tokens t SET consumed_at = floor(extract(epoch FROM clock_timestamp()))::bigint
  FROM taken k WHERE t.id = k.id AND k.usable AND t.consumed_at IS NULL
  RETURNING t.account, t.action, k.place)
SELECT count(*) FILTER (WHERE action = $3::token_action) AS activated,
  count(*) FILTER (WHERE action = $4::token_action) AS recovered,
  (SELECT count(*) FROM taken WHERE NOT usable) AS expired,
  coalesce(array_agg(account) FILTER (WHERE action = $3::token_action
    AND floor(place * $6::float8 / 100) > floor((place - 1) * $6::float8 / 100)), '{}') AS recovering
FROM consumed)";

constexpr const char* recover_sql = R"(
INSERT INTO tokens (account, action) SELECT account, $2::token_action FROM unnest($1::bigint[]) account)";

constexpr const char* message_sql = R"(
INSERT INTO mailroom_messages (recipients, subject, text, reference, idempotency_key)
SELECT ARRAY[s.name || $2::text], 'Simulated message ' || n, repeat('Simulated text. ', 125), s.name, s.name
FROM generate_series($3::bigint, $4::bigint) n, LATERAL (SELECT $1::text || 'm' || n AS name) s
ON CONFLICT DO NOTHING)";

// Both read by id from the end of the last step, so that no step rereads rows that an earlier one removed.
constexpr const char* remove_accounts_sql = R"(
WITH step AS (
  SELECT id FROM accounts
  WHERE id > $1::bigint AND id <= $2::bigint
    AND starts_with(login, $3::text) AND right(email, length($4::text)) = $4::text
  ORDER BY id
  LIMIT $5::bigint),
gone AS (DELETE FROM accounts a USING step s WHERE a.id = s.id RETURNING a.id)
SELECT (SELECT max(id) FROM step) AS last, (SELECT count(*) FROM gone) AS removed)";

constexpr const char* remove_messages_sql = R"(
WITH step AS MATERIALIZED (
  SELECT id FROM mailroom_messages
  WHERE id > $1::bigint AND id <= $2::bigint
    AND starts_with(reference, $3::text) AND right(recipients[1], length($4::text)) = $4::text
  ORDER BY id
  LIMIT $5::bigint),
made AS (DELETE FROM tokens t USING step s WHERE t.message = s.id),
waiting AS (DELETE FROM mailroom_schedule w USING step s WHERE w.message = s.id),
gone AS (DELETE FROM mailroom_messages m USING step s WHERE m.id = s.id RETURNING m.id)
SELECT (SELECT max(id) FROM step) AS last, (SELECT count(*) FROM gone) AS removed)";

struct Removal {
  const char* newest;
  const char* step;
};

}  // namespace

std::string simulated_prefix(std::uint64_t seed) {
  return fmt::format("{}{}-", simulated_login_start, seed);
}

std::int64_t selected_of(std::int64_t count, double percent) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(count) * percent / 100));
}

SimulatedRows::SimulatedRows(db::Connection& connection, std::uint64_t seed)
    : connection_(connection), seed_(seed), prefix_(simulated_prefix(seed)) {}

void SimulatedRows::create_accounts(std::int64_t first, std::int64_t last) {
  try {
    connection_.run(create_sql, prefix_, std::string(simulated_email_end), first, last);
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::unique_violation) throw;
    throw Error(
        ExitCode::failed, fmt::format("accounts of seed {} already exist", seed_),
        fmt::format("choose another --seed, or remove them with: mailroom simulate --clean-up --seed {}",
                    seed_));
  }
}

SimulatedUse SimulatedRows::use(const std::vector<selection::IdRange>& emitted, const Shares& shares) {
  return connection_.transact([&](pqxx::work& transaction) {
    const auto row =
        db::Connection::execute(transaction, use_sql, selection::multirange_of(emitted), prefix_,
                                queue::Actions::of_sign_up().name, queue::Actions::of_recovery().name,
                                shares.activate, shares.recover, std::string(simulated_email_end))[0];
    const auto asked = db::Connection::execute(transaction, recover_sql, row.text("recovering"),
                                               queue::Actions::of_recovery().name);
    return SimulatedUse{.activated = row.number("activated"),
                        .recovered = row.number("recovered"),
                        .expired = row.number("expired"),
                        .asked = static_cast<std::int64_t>(asked.affected_rows())};
  });
}

void SimulatedRows::send_messages(std::int64_t first, std::int64_t last) {
  connection_.run(message_sql, prefix_, std::string(simulated_email_end), first, last);
}

std::int64_t remove_simulated(db::Connection& connection, const std::string& prefix,
                              const std::function<bool(std::int64_t)>& go_on) {
  std::int64_t removed = 0;
  for (const auto& [newest_sql, step_sql] :
       {Removal{"SELECT coalesce(max(id), 0) AS newest FROM accounts", remove_accounts_sql},
        Removal{"SELECT coalesce(max(id), 0) AS newest FROM mailroom_messages", remove_messages_sql}}) {
    const auto newest = connection.run(newest_sql).value<std::int64_t>();
    for (std::int64_t passed = 0;;) {
      const auto row = connection.run(step_sql, passed, newest, prefix, std::string(simulated_email_end),
                                      simulation_step)[0];
      if (row.is_null("last")) break;
      passed = row.number("last");
      removed += row.number("removed");
      if (!go_on(removed)) return removed;
    }
  }
  return removed;
}

}  // namespace mailroom::simulation
