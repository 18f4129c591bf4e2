// What the tables and triggers guarantee to an application.

#include <set>

#include "support/catch.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::schema_test {
namespace {

std::string status_of(db::Connection& connection, int account) {
  return connection.run("SELECT status FROM accounts WHERE id = $1", account)[0][0].c_str();
}

std::string refusal(db::Connection& connection, const std::string& sql) {
  try {
    connection.run(sql);
  } catch (const db::DatabaseError& error) {
    return error.sqlstate();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("an account changes its status as the walk-through describes") {
  TestDatabase database;
  const auto connection = database.connect();
  CHECK(value<std::string>(*connection, "SELECT j::text FROM jobs j") == "(mailroom,0)");
  connection->run("INSERT INTO accounts (email, login) VALUES ('user@example.com', 'user123')");
  CHECK(status_of(*connection, 1) == "provisioned");
  const auto token = connection->run(
      "SELECT action, length(secret), code ~ '^[0-9]{5}$', expires_at - created_at, consumed_at "
      "FROM tokens WHERE account = 1")[0];
  CHECK(token[0].as<std::string>() == "activation");
  CHECK(token[1].as<int>() == 32);
  CHECK(token[2].as<bool>());
  CHECK(token[3].as<int>() == 900);
  CHECK(token[4].is_null());

  connection->run(
      "UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE account = 1 AND action = "
      "'activation'");
  CHECK(status_of(*connection, 1) == "active");
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 1");
  CHECK(value<bool>(*connection, "SELECT suspended_at IS NOT NULL AND unsuspended_at IS NULL FROM accounts"));
  connection->run("UPDATE accounts SET status = 'active' WHERE id = 1");
  CHECK(value<bool>(*connection, "SELECT suspended_at IS NULL AND unsuspended_at IS NOT NULL FROM accounts"));
  CHECK(status_of(*connection, 1) == "active");
}

TEST_CASE("lifting the suspension of an account that was never activated makes it provisioned") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  connection->run("UPDATE accounts SET status = 'suspended'");
  connection->run("UPDATE accounts SET status = 'active'");
  CHECK(status_of(*connection, 1) == "provisioned");
}

TEST_CASE("an account that is inserted with a status other than provisioned gets no token") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("INSERT INTO accounts (email, login, status) VALUES ('a@test.example', 'a', 'active')");
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") == 0);
}

TEST_CASE("account and token are inserted together or not at all") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("ALTER TABLE tokens ADD CONSTRAINT none CHECK (false)");
  CHECK(refusal(*connection, "INSERT INTO accounts (email, login) VALUES ('a@test.example', 'a')") ==
        "23514");
  CHECK(value<int>(*connection, "SELECT count(*) FROM accounts") == 0);
}

TEST_CASE("ON CONFLICT DO NOTHING leaves no token behind and commits") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1, "a");
  connection->run(
      "INSERT INTO accounts (email, login) VALUES ('a1@test.example', 'other'), ('b@test.example', 'b') "
      "ON CONFLICT DO NOTHING");
  CHECK(value<int>(*connection, "SELECT count(*) FROM accounts") == 2);
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") == 2);
}

TEST_CASE("control characters are refused in new and changed values, and tolerated in old ones") {
  TestDatabase database;
  const auto connection = database.connect();
  for (const std::string code : {"1", "9", "10", "13", "31", "127"}) {
    CAPTURE(code);
    CHECK(refusal(*connection, "INSERT INTO accounts (email, login) VALUES ('a' || chr(" + code +
                                   ") || '@x.example', 'a')") == "23514");
    CHECK(refusal(*connection, "INSERT INTO accounts (email, login) VALUES ('a@x.example', 'a' || chr(" +
                                   code + "))") == "23514");
  }
  connection->run("ALTER TABLE accounts DISABLE TRIGGER before_account_insert");
  connection->run("INSERT INTO accounts (email, login) VALUES (E'old\\n@x.example', 'old, \"quoted\"')");
  connection->run("ALTER TABLE accounts ENABLE TRIGGER before_account_insert");
  CHECK(refusal(*connection, "UPDATE accounts SET status = 'active'") == "accepted");
  CHECK(refusal(*connection, "UPDATE accounts SET login = 'new'") == "accepted");
  CHECK(refusal(*connection, "UPDATE accounts SET login = E'new\\r'") == "23514");
  CHECK(refusal(*connection, "UPDATE accounts SET email = 'fixed@x.example'") == "accepted");
}

TEST_CASE("the database alone assigns token ids, after the transaction has its own id") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  CHECK(refusal(*connection,
                "INSERT INTO tokens (id, account, action) VALUES (1000000000, 1, 'activation')") == "428C9");
  CHECK(refusal(
            *connection,
            "INSERT INTO tokens (id, account, action) VALUES (nextval('tokens_id_seq'), 1, 'activation')") ==
        "428C9");
  CHECK(refusal(*connection, "INSERT INTO tokens (id, account, action) VALUES (DEFAULT, 1, 'activation')") ==
        "accepted");
}

TEST_CASE("codes have five digits, cover their whole range and do not cluster") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto rows = connection->run(
      "SELECT left(code, 1), count(*) FROM (SELECT mailroom_random_code() AS code FROM generate_series(1, "
      "20000)) c "
      "WHERE code ~ '^[0-9]{5}$' GROUP BY 1");
  REQUIRE(rows.size() == 10);
  // 2,000 are expected for each first digit; eight standard deviations are 340.
  for (const auto& row : rows)
    CHECK(std::abs(row[1].as<int>() - 2000) < 340);
}

TEST_CASE("several tokens of one transaction send one notification") {
  TestDatabase database;
  const auto listener = database.connect();
  listener->listen("token_insert");
  insert_accounts(*database.connect(), 5);
  bool heard = false;
  for (int i = 0; i < 1000 && !heard; ++i) {
    listener->run("SELECT 1");
    heard = listener->take_notifications();
  }
  CHECK(heard);
  listener->run("SELECT 1");
  CHECK_FALSE(listener->take_notifications());
}

TEST_CASE("the walk-through's dequeue statement still runs") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto rows = connection->run(
      "WITH token_data AS (SELECT t.account, t.secret, t.code, t.expires_at, t.id, t.action, a.email, "
      "a.login "
      "FROM jobs JOIN tokens t ON t.id > jobs.last_seq AND t.expires_at > EXTRACT(EPOCH FROM NOW()) "
      "AND t.consumed_at IS NULL AND t.action IN ('activation', 'password_recovery') "
      "JOIN accounts a ON a.id = t.account AND ((t.action = 'activation' AND a.status = 'provisioned') "
      "OR (t.action = 'password_recovery' AND a.status = 'active')) "
      "WHERE jobs.job_type = 'mailroom' ORDER BY id ASC LIMIT 10), "
      "updated_jobs AS (UPDATE jobs SET last_seq = (SELECT MAX(id) FROM token_data) "
      "WHERE EXISTS (SELECT 1 FROM token_data) RETURNING last_seq) "
      "SELECT td.action, td.email, td.login, td.secret, td.code FROM token_data td");
  CHECK(rows.size() == 3);
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs") == 3);
}

TEST_CASE("every function of ours pins its search_path, except those that queries inline") {
  TestDatabase database;
  const auto connection = database.connect();
  // Each with its arguments as parameters, so that no value of theirs decides the plan.
  const auto loose = connection->run(R"(
SELECT format('PREPARE loose%s AS SELECT * FROM %s(%s)', nullif('(' || a.types || ')', '()'), p.proname, a.parameters),
  format('EXPLAIN (FORMAT JSON) EXECUTE loose%s', nullif('(' || a.nulls || ')', '()'))
FROM pg_proc p, LATERAL (
  SELECT coalesce(string_agg(format_type(t, NULL), ', ' ORDER BY n), '') AS types,
    coalesce(string_agg('$' || n, ', ' ORDER BY n), '') AS parameters, coalesce(string_agg('NULL', ', '), '') AS nulls
  FROM unnest(p.proargtypes) WITH ORDINALITY u (t, n)) a
WHERE p.pronamespace = 'public'::regnamespace AND (p.proname LIKE 'mailroom\_%' OR p.proname LIKE 'trg\_%')
  AND NOT coalesce('search_path=public, pg_temp' = ANY (p.proconfig), false) AND p.prosqlbody IS NULL)");
  CHECK(loose.size() == 14);
  connection->run("SET plan_cache_mode = force_generic_plan");
  // A function that is not inlined shows up as a function scan.
  for (const auto& row : loose) {
    INFO(row[0].c_str());
    connection->run(row[0].c_str());
    const auto plan = connection->run(row[1].c_str())[0][0];
    CHECK(plan.as<std::string>().find("\"Relation Name\"") != std::string::npos);
    CHECK(plan.as<std::string>().find("\"Function Name\": \"mailroom") == std::string::npos);
    connection->run("DEALLOCATE loose");
  }
}

TEST_CASE("times are rounded down, so that no row is created in the future") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  // In the second half of a second, rounding to the nearest one would round up.
  const std::string is_late = ", extract(epoch FROM now()) % 1 > 0.5";
  bool inserted_late = false;
  bool changed_late = false;
  while (!inserted_late || !changed_late) {
    const auto inserted = connection->run(
        "INSERT INTO tokens (account, action) VALUES (1, 'activation') "
        "RETURNING greatest(created_at, expires_at - 900) > extract(epoch FROM now())" +
        is_late)[0];
    CHECK_FALSE(inserted[0].as<bool>());
    inserted_late = inserted_late || inserted[1].as<bool>();
    const auto changed = connection->run(
        "UPDATE accounts SET status = CASE status WHEN 'suspended' THEN 'active' ELSE 'suspended' "
        "END::account_status "
        "RETURNING status_changed_at > extract(epoch FROM now())" +
        is_late)[0];
    CHECK_FALSE(changed[0].as<bool>());
    changed_late = changed_late || changed[1].as<bool>();
  }
}

TEST_CASE("times after January 2038 are stored correctly") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  connection->run("UPDATE tokens SET expires_at = 4102444800, consumed_at = 4102444800");
  connection->run("UPDATE accounts SET suspended_at = 4102444800");
  CHECK(value<std::int64_t>(*connection, "SELECT expires_at FROM tokens") == 4102444800);
}

}  // namespace mailroom::test::schema_test
