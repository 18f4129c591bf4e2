#include "feed/feed_session.hpp"

#include "db/pooler.hpp"

namespace mailroom {

FeedSession::FeedSession(const std::string& conninfo, const Check& check_schema)
    : connection_(conninfo, "mailroom tail") {
  require_own_session(connection_, conninfo, "mailroom tail");
  check_schema(connection_);
  // The planner is kept from joining and compiling its way through whole tables for a few rows.
  connection_.run(
      "SET default_transaction_isolation = 'repeatable read'; SET default_transaction_read_only = on; "
      "SET row_security = off; SET jit = off; SET idle_session_timeout = 0; SET enable_hashjoin = off; "
      "SET enable_mergejoin = off; SET cursor_tuple_fraction = 1");
}

void FeedSession::follow(const std::string& channel) {
  if (connection_.run("SELECT pg_is_in_recovery()")[0][0].as<bool>()) {
    throw Error(ExitCode::failed, "a standby cannot be followed: it does not show which tokens are to come",
                "connect to the primary, or leave out -f");
  }
  connection_.listen(channel);
}

std::int64_t FeedSession::now() {
  return connection_.run("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint")[0][0]
      .as<std::int64_t>();
}

std::string FeedSession::identity() {
  return connection_
      .run(
          "SELECT system_identifier || ' ' || oid FROM pg_control_system(), pg_database "
          "WHERE datname = current_database()")[0][0]
      .c_str();
}

SequencePositions FeedSession::sequence_positions() {
  static const std::string sql = std::string("SELECT ") + sequence_positions_sql;
  const auto row = connection_.run(sql)[0];
  return {row[0].as<std::int64_t>(), row[1].as<std::int64_t>(), row[2].as<std::int64_t>()};
}

std::array<SequenceHolders, 3> FeedSession::sequence_holders() {
  // In the order of Followed.
  const auto rows = connection_.run(
      "SELECT s.n, l.virtualtransaction FROM pg_locks l "
      "JOIN unnest(ARRAY['tokens_id_seq', 'mailroom_batches_id_seq', "
      "'mailroom_operations_id_seq']::regclass[]) "
      "WITH ORDINALITY AS s (sequence, n) ON l.relation = s.sequence "
      "WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted "
      "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())");
  std::array<SequenceHolders, 3> holders;
  for (const auto& row : rows)
    holders.at(row[0].as<std::size_t>() - 1).insert(row[1].c_str());
  return holders;
}

ServerLook FeedSession::look(std::int64_t listed_after) {
  // When a prepared transaction began is not known, only when it was prepared.
  const auto rows = connection_.run(
      "WITH running (name, started) AS ("
      "SELECT pid || ' ' || xact_start, floor(extract(epoch FROM xact_start))::bigint FROM pg_stat_activity "
      "WHERE datname = current_database() AND pid <> pg_backend_pid() "
      "AND xact_start < clock_timestamp() - make_interval(secs => $1::double precision) "
      "UNION ALL SELECT 'prepared ' || transaction, floor(extract(epoch FROM prepared))::bigint - 3600 "
      "FROM pg_prepared_xacts WHERE database = current_database() "
      "UNION ALL (SELECT 'hidden', NULL FROM pg_stat_activity WHERE datname = current_database() "
      "AND query = '<insufficient privilege>' LIMIT 1)) "
      "SELECT pg_current_snapshot()::text, floor(extract(epoch FROM clock_timestamp()))::bigint, r.name, "
      "r.started "
      "FROM (SELECT) one LEFT JOIN running r ON true",
      listed_after);
  ServerLook look;
  look.snapshot = rows[0][0].c_str();
  look.now = rows[0][1].as<std::int64_t>();
  for (const auto& row : rows) {
    if (row[2].is_null()) continue;
    if (row[3].is_null()) {
      look.some_are_hidden = true;
    } else {
      look.running.emplace(row[2].c_str(), row[3].as<std::int64_t>());
    }
  }
  return look;
}

}  // namespace mailroom
