// A database of PostgreSQL as the world of a play.

#include "differential/database_world.hpp"

#include <fmt/format.h>
#include <stdexcept>

#include "base/json.hpp"
#include "db/values.hpp"
#include "schema/bookkeeping.hpp"
#include "support/actions.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test {
namespace {

using Seconds = std::chrono::seconds;

constexpr auto unit_seconds = Seconds(play_unit).count();
/// A lifetime that no play outlasts.
constexpr int endless = 1000;

template <typename Field>
Ids ids_of(const Field& multirange) {
  Ids ids;
  for (const auto& range : selection::parse_id_ranges(multirange.c_str())) {
    for (auto id = range.first; id < range.end; ++id)
      ids.push_back(id);
  }
  return ids;
}

}  // namespace

DatabaseWorld::DatabaseWorld(const TestDatabase& database, bool checks_all_gaps)
    : database_(database), connection_(database.connect()), checks_all_gaps_(checks_all_gaps) {
  const auto is_alone = [&] {
    return connection_
        ->run(
            "SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())")
        .empty();
  };
  if (!eventually(is_alone)) throw std::runtime_error("the sessions of the last play do not end");
  connection_->run(
      "TRUNCATE accounts, tokens, mailroom_batches, mailroom_gaps, mailroom_deliveries, mailroom_queues, "
      "mailroom_budgets, mailroom_operations RESTART IDENTITY");
  connection_->run("UPDATE jobs SET last_seq = 0");
}

std::int64_t DatabaseWorld::insert(int writer, const queue::Action* action) {
  auto& [connection, inserted] = writers_[writer];
  if (!connection) connection = database_.connect();
  if (inserted.empty()) connection->run("BEGIN");
  const auto* status = action == activation_action() ? "provisioned" : "active";
  // An activation token comes with its account.
  connection->run(
      "INSERT INTO accounts (email, login, status) VALUES ($1 || '@test.example', $1, $2::account_status)",
      fmt::format("user{}", ++accounts_), status);
  if (action == recovery_action())
    connection->run(
        "INSERT INTO tokens (account, action) VALUES (currval('accounts_id_seq'), $1::token_action)",
        action->name);
  inserted.push_back(value<std::int64_t>(*connection, "SELECT currval('tokens_id_seq')"));
  open_.insert(inserted.back());
  return inserted.back();
}

void DatabaseWorld::commit(int writer, std::optional<int> lifetime) {
  auto& [connection, inserted] = writers_.at(writer);
  connection->run(
      "UPDATE tokens SET expires_at = floor(extract(epoch FROM clock_timestamp()))::bigint + $1::bigint "
      "WHERE id = ANY ($2::bigint[])",
      lifetime.value_or(endless) * unit_seconds + unit_seconds / 2, db::array_text(inserted));
  connection->run("COMMIT");
  for (const auto id : std::exchange(inserted, {})) {
    open_.erase(id);
    committed_.insert(id);
  }
}

void DatabaseWorld::roll_back(int writer) {
  auto& [connection, inserted] = writers_.at(writer);
  connection->run("ROLLBACK");
  for (const auto id : std::exchange(inserted, {}))
    open_.erase(id);
}

void DatabaseWorld::flood(int count) {
  connection_->run("INSERT INTO accounts (email, login, status) VALUES ($1, $1, 'active')",
                   fmt::format("user{}@test.example", ++accounts_));
  for (
      const auto& row : connection_->run(
          "INSERT INTO tokens (account, action, expires_at) SELECT currval('accounts_id_seq'), 'activation', 1 "
          "FROM generate_series(1, $1) RETURNING id",
          count))
    committed_.insert(row[0].as<std::int64_t>());
}

void DatabaseWorld::consume(std::int64_t token) {
  connection_->run("UPDATE tokens SET consumed_at = floor(extract(epoch FROM now())) WHERE id = $1", token);
}

void DatabaseWorld::suspend_account_of(std::int64_t token) {
  connection_->run(
      "UPDATE accounts SET status = 'suspended' WHERE id = (SELECT account FROM tokens WHERE id = $1)",
      token);
}

void DatabaseWorld::remove(std::int64_t token) {
  connection_->run("DELETE FROM tokens WHERE id = $1", token);
  committed_.erase(token);
}

std::unique_ptr<claim::QueueSession> DatabaseWorld::connect(bool delivers) {
  claim::PgQueueSession::Setup setup{
      database_.conninfo(), {"mailroom"}, "token_insert", schema::require_current_schema};
  setup.detail.delivers = delivers;
  auto session = std::make_unique<claim::PgQueueSession>(setup);
  std::vector<int> known;
  for (const auto& [pid, number] : session_of_)
    known.push_back(pid);
  const auto added = connection_->run(
      "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = mailroom_lock_class('collector')::oid AND database = "
      "(SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> ALL ($1::int[])",
      db::array_text(known));
  if (added.size() != 1) throw std::logic_error("more than one session was added");
  const auto pid = added[0][0].as<int>();
  pids_[session.get()] = pid;
  session_of_[pid] = sessions_++;
  return session;
}

void DatabaseWorld::terminate(claim::QueueSession& session) {
  const auto pid = pids_.extract(&session).mapped();
  connection_->run("SELECT pg_terminate_backend($1)", pid);
  await_end(pid);
}

void DatabaseWorld::disconnect(std::unique_ptr<claim::QueueSession> session) {
  const auto pid = pids_.extract(session.get());
  session.reset();
  if (!pid.empty()) await_end(pid.mapped());
}

void DatabaseWorld::await_end(int pid) {
  session_of_.erase(pid);
  connection_->run("SELECT pg_advisory_lock(mailroom_lock_class('collector'), $1)", pid);
  connection_->run("SELECT pg_advisory_unlock(mailroom_lock_class('collector'), $1)", pid);
  // It releases its locks one by one, and leaves the list after that.
  const auto has_ended = [&] {
    return connection_->run("SELECT FROM pg_stat_activity WHERE pid = $1", pid).empty();
  };
  if (!eventually(has_ended)) throw std::runtime_error("a session does not end");
}

void DatabaseWorld::pass(int units) {
  const auto seconds = units * unit_seconds;
  connection_->run("UPDATE tokens SET expires_at = expires_at - $1::bigint", seconds);
  connection_->run("UPDATE mailroom_deliveries SET not_before = not_before - $1::bigint * interval '1 s'",
                   seconds);
  connection_->run("UPDATE mailroom_budgets SET taken_until = taken_until - $1::bigint * interval '1 s'",
                   seconds);
}

Rewound DatabaseWorld::rewind(std::int64_t target) {
  const auto row =
      connection_->run("SELECT * FROM mailroom_rewind('mailroom', $1, 1000000, '{}')", target)[0];
  return {row[0].as<std::int64_t>(), row[1].as<int>()};
}

std::int64_t DatabaseWorld::replay(const Ids& tokens) {
  return connection_
      ->run("SELECT mailroom_replay('mailroom', $1::bigint[], '{}')", db::array_text(tokens))[0][0]
      .as<std::int64_t>();
}

bool DatabaseWorld::pause(bool paused) {
  return connection_->run("SELECT mailroom_pause_queue('mailroom', $1, 'token_insert')", paused)[0][0]
      .as<bool>();
}

void DatabaseWorld::define(const PlayedDefinition& definition) {
  nlohmann::json text = nlohmann::json::object();
  if (definition.actions) {
    for (const auto action : *definition.actions)
      text["actions"].push_back(action->name);
  }
  if (definition.gap)
    text["rate"] = {
        {"tokens", 1}, {"milliseconds", *definition.gap * unit_seconds * 1000}, {"burst", definition.burst}};
  connection_->run("SELECT mailroom_set_queue('mailroom', $1::jsonb, 'token_insert')", plain_json(text));
}

void DatabaseWorld::prepare_claim() {
  if (checks_all_gaps_) connection_->run("UPDATE mailroom_gaps SET pending = NULL WHERE pending IS NOT NULL");
}

Snapshot DatabaseWorld::snapshot(const Ids& batches) {
  Snapshot seen;
  read_queue(seen);
  read_batches(seen, batches);
  read_deliveries(seen);
  return seen;
}

void DatabaseWorld::read_queue(Snapshot& seen) {
  const auto row = connection_->run(R"(
SELECT s.cursor, j.last_seq,
       (SELECT coalesce(range_agg(int8range(t.id, t.id, '[]')), '{}') FROM tokens t
        WHERE t.id > s.cursor AND t.consumed_at IS NULL AND t.expires_at > extract(epoch FROM clock_timestamp())
          AND mailroom_takes(mailroom_queue_actions('mailroom'), t.action)),
       (SELECT coalesce(range_agg(g), '{}') FROM mailroom_gaps h, unnest(h.ids) g WHERE h.id = ANY (s.gap_ids)),
       b.expired, b.consumed, EXISTS (
         SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 1835100526 AND objid = 'tokens'::regclass
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
FROM mailroom_queue_state('mailroom') s, jobs j,
     (SELECT coalesce(sum(skipped_expired), 0) AS expired, coalesce(sum(skipped_consumed), 0) AS consumed
      FROM mailroom_batches) b)")[0];
  seen.cursor = row[0].as<std::int64_t>();
  seen.published_cursor = row[1].as<std::int64_t>();
  seen.waiting = ids_of(row[2]);
  seen.expired = row[4].as<int>();
  seen.consumed = row[5].as<int>();
  seen.is_polled = row[6].as<bool>();
  for (const auto id : ids_of(row[3])) {
    if (committed_.contains(id)) seen.late.push_back(id);
    if (open_.contains(id)) seen.open.push_back(id);
  }
}

void DatabaseWorld::read_batches(Snapshot& seen, const Ids& batches) {
  for (const auto& row : connection_->run(R"(
SELECT id, mailroom_batch_ids(ids, ids_mask), attempts, collector, emitted_at IS NOT NULL, dead_at IS NOT NULL,
       emitted, skipped_status, skipped_invalid, skipped_ids
FROM mailroom_batches WHERE id = ANY ($1::bigint[]) ORDER BY id)",
                                          db::array_text(batches))) {
    Snapshot::Batch batch{.id = row[0].as<std::int64_t>(),
                          .tokens = ids_of(row[1]),
                          .attempt = row[2].as<int>(),
                          .is_acknowledged = row[4].as<bool>(),
                          .is_dead = row[5].as<bool>()};
    const auto holder = session_of_.find(row[3].as<int>());
    if (holder != session_of_.end()) batch.holder = holder->second;
    batch.counts = {.emitted = row[6].as<int>(),
                    .wrong_status = row[7].as<int>(),
                    .invalid = row[8].as<int>(),
                    .skipped_ids = ids_of(row[9])};
    seen.batches.push_back(batch);
  }
}

void DatabaseWorld::read_deliveries(Snapshot& seen) {
  for (const auto& row : connection_->run(R"(
SELECT token, state, attempts, unknowns, round(extract(epoch FROM not_before - clock_timestamp()) / 3600)::bigint AS wait_hours,
       batch, accepted_at IS NOT NULL, coalesce(reply, ''), coalesce(address, ''),
       (SELECT coalesce(string_agg(format('%s %s %s', a->>'state', a->>'address', a->>'reply'), '; ' ORDER BY n), '')
        FROM jsonb_array_elements(earlier_attempts) WITH ORDINALITY e (a, n))
FROM mailroom_deliveries ORDER BY token)")) {
    seen.deliveries.push_back({row[0].as<std::int64_t>(), row[1].as<std::string>(), row[2].as<int>(),
                               row[3].as<int>(), row.optional<long>("wait_hours"), row[5].as<std::int64_t>(),
                               row[6].as<bool>(), row[7].as<std::string>(), row[8].as<std::string>(),
                               row[9].as<std::string>()});
  }
}

}  // namespace mailroom::test
