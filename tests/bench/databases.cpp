#include "bench/databases.hpp"

#include "bench/loading.hpp"
#include "schema/migration.hpp"

namespace mailroom::bench {
namespace {

constexpr const char* insert_accounts =
    "INSERT INTO accounts (id, email, login, status) "
    "SELECT g, 'user' || g || '@bench.example', 'user' || g, "
    "CASE WHEN g % 3 = 0 THEN 'active' ELSE 'provisioned' END::account_status "
    "FROM generate_series(1, $1::bigint) g";

/// Inserts due tokens $1 to $2 for accounts 1 to $3, for provisioned and active ones in turn ($4: 0), or only
/// for one kind ($4: 1 or 2).
constexpr const char* insert_mixed_tokens =
    "INSERT INTO tokens (id, account, action, secret, code, expires_at) "
    "SELECT g, 1 + (k.active + 3 * (g / 2)) % ($3::bigint / 3 * 3), "
    "CASE WHEN k.active = 2 THEN 'password_recovery' ELSE 'activation' END::token_action, "
    "sha256(int8send(g)), lpad((g * 7919 % 100000)::text, 5, '0'), extract(epoch FROM now())::bigint + 2592000 "
    "FROM generate_series($1::bigint, $2::bigint) g, "
    "LATERAL (SELECT CASE $4::integer WHEN 0 THEN g % 2 * 2 ELSE ($4::integer - 1) * 2 END AS active) k";

/// Inserts tokens $1 to $2 for accounts 1 to $3 that expire at $4 (seconds since 1970). If $5 is true, every
/// second token is consumed. Accounts are used in order of sign-up and repeatedly, or in scattered order if
/// $6 is true.
constexpr const char* insert_tokens =
    "INSERT INTO tokens (id, account, action, secret, code, expires_at, consumed_at) "
    "SELECT g, a.id, CASE WHEN a.id % 3 = 0 THEN 'password_recovery' ELSE 'activation' END::token_action, "
    "sha256(int8send(g)), lpad((g * 7919 % 100000)::text, 5, '0'), $4::bigint, "
    "CASE WHEN $5::boolean AND g % 2 = 0 THEN $4::bigint END "
    "FROM generate_series($1::bigint, $2::bigint) g, LATERAL ("
    "SELECT 1 + CASE WHEN $6::boolean THEN g * 48271 ELSE g - 1 END % $3::bigint AS id) a";

constexpr std::int64_t month = 30LL * 24 * 3600;

void make_accounts_database(Stage& stage) {
  stage.once("accounts", [&] {
    stage.create_database("accounts_only", "template0");
    Process(stage.mailroom("accounts_only", {"migrate"})).wait();
    const auto connection = stage.connect("accounts_only");
    without_triggers(*connection);
    connection->run(insert_accounts, account_count(stage));
    finish_loading(*connection);
  });
}

struct Mixture {
  bool some_consumed = false;
  bool scattered = false;
};

Backlog load_backlog(Stage& stage, const Backlog& backlog, const Mixture& mixture) {
  make_live_database(stage, backlog.database);
  stage.once(backlog.database + " tokens", [&] {
    const auto connection = stage.connect(backlog.database);
    const auto now = in_seconds(connection->server_time());
    const auto all = backlog.old_tokens + backlog.due;
    without_triggers(*connection);
    with_indexes_dropped(*connection, [&] {
      connection->run(insert_tokens, 1, backlog.old_tokens, account_count(stage), now - month,
                      mixture.some_consumed, mixture.scattered);
      connection->run(insert_tokens, backlog.old_tokens + 1, all, account_count(stage), now + month, false,
                      mixture.scattered);
    });
    finish_loading(*connection);
  });
  return backlog;
}

Backlog load_mixed(Stage& stage, const Backlog& backlog, const std::function<void(db::Connection&)>& load) {
  make_live_database(stage, backlog.database);
  stage.once(backlog.database + " tokens", [&] {
    const auto connection = stage.connect(backlog.database);
    without_triggers(*connection);
    with_indexes_dropped(*connection, [&] { load(*connection); });
    finish_loading(*connection);
  });
  return backlog;
}

}  // namespace

std::int64_t account_count(const Stage& stage) {
  return stage.scaled(300'000, 60'000);
}

Backlog plain_backlog(Stage& stage) {
  return load_backlog(stage, {.database = "backlog", .due = stage.scaled(500'000)}, {});
}

Backlog scattered_backlog(Stage& stage) {
  return load_backlog(stage, {.database = "scattered", .due = stage.scaled(500'000)}, {.scattered = true});
}

Backlog deep_backlog(Stage& stage) {
  return load_backlog(
      stage, {.database = "deep", .old_tokens = stage.scaled(10'000'000), .due = stage.scaled(500'000)},
      {.some_consumed = true});
}

Backlog expired_backlog(Stage& stage) {
  return load_backlog(stage, {.database = "expired", .old_tokens = stage.scaled(1'000'000), .due = 1'000},
                      {});
}

Backlog mixed_backlog(Stage& stage) {
  const auto due = stage.scaled(500'000);
  return load_mixed(stage, {.database = "mixed", .old_tokens = due, .due = due},
                    [&](db::Connection& connection) {
                      connection.run(insert_mixed_tokens, 1, 2 * due, account_count(stage), 0);
                    });
}

Backlog others_backlog(Stage& stage) {
  const Backlog backlog{.database = "others", .old_tokens = stage.scaled(1'000'000), .due = 1'000};
  return load_mixed(stage, backlog, [&](db::Connection& connection) {
    const auto others = backlog.old_tokens;
    connection.run(insert_mixed_tokens, 1, others, account_count(stage), 1);
    connection.run(insert_mixed_tokens, others + 1, others + backlog.due, account_count(stage), 2);
  });
}

std::string make_live_database(Stage& stage, const std::string& name) {
  make_accounts_database(stage);
  stage.once(name, [&] { stage.create_database(name, "accounts_only"); });
  return name;
}

std::string original_database(Stage& stage) {
  stage.once("original", [&] {
    stage.create_database("original", "template0");
    const auto connection = stage.connect("original");
    connection->run(schema::embedded_migrations().at(0).up);
    without_triggers(*connection);
    const auto count = stage.scaled(1'000'000);
    const auto now = in_seconds(connection->server_time());
    connection->run(insert_accounts, count);
    connection->run(insert_tokens, 1, count, count, now - month, true, false);
    finish_loading(*connection);
  });
  return "original";
}

void clear_queue(Stage& stage, const std::string& database) {
  const auto connection = stage.connect(database);
  connection->run("TRUNCATE tokens, mailroom_batches, mailroom_gaps, mailroom_deliveries RESTART IDENTITY");
  connection->run("UPDATE jobs SET last_seq = 0");
}

int collector_backend(Stage& stage, const std::string& database) {
  const auto connection = stage.connect(database);
  const auto rows = connection->run(
      "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = mailroom_lock_class('collector')::oid");
  return rows.empty() ? 0 : rows[0][0].as<int>();
}

void place_cursor(db::Connection& connection, std::int64_t cursor) {
  connection.run("TRUNCATE mailroom_batches, mailroom_gaps");
  connection.run("UPDATE jobs SET last_seq = $1", cursor);
}

}  // namespace mailroom::bench
