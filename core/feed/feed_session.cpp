#include "feed/feed_session.hpp"

#include "db/pooler.hpp"

namespace mailroom {

FeedSession::FeedSession(const std::string& conninfo, const Check& check_schema)
    : connection_(conninfo, "mailroom tail") {
  require_own_session(connection_, conninfo, "mailroom tail");
  check_schema(connection_);
  // The feed reads few rows of large tables: hash joins, merge joins and JIT would read and compile too much.
  connection_.run(R"(
SET default_transaction_isolation = 'repeatable read';
SET default_transaction_read_only = on;
SET row_security = off;
SET jit = off;
SET idle_session_timeout = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET cursor_tuple_fraction = 1)");
}

void FeedSession::follow(const std::string& channel) {
  if (!connection_.run("SELECT pg_is_in_recovery()")[0][0].as<bool>()) connection_.listen(channel);
}

std::string FeedSession::identity() {
  return connection_
      .run(R"(
SELECT system_identifier || ' ' || oid FROM pg_control_system(), pg_database WHERE datname = current_database())")
          [0][0]
      .c_str();
}

FeedSession::Moment FeedSession::moment() {
  const auto row = connection_.run(
      "SELECT pg_current_snapshot()::text, floor(extract(epoch FROM clock_timestamp()))::bigint")[0];
  return {.snapshot = row[0].c_str(), .now = row[1].as<std::int64_t>()};
}

}  // namespace mailroom
