// What migrations delete, as they declare it and in fact.

#include <map>
#include <set>

#include "schema/migration_plan.hpp"
#include "schema/migrator.hpp"
#include "support/catch.hpp"
#include "support/several_queues.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::losses_test {
namespace {

using Names = std::set<std::string>;

/// The number of rows of each table, `tokens`, and of values in each column, `tokens.secret`.
std::map<std::string, std::int64_t> contents(db::Connection& connection) {
  const auto query = value<std::string>(
      connection,
      "SELECT string_agg(format('SELECT %L, count(%s) FROM %I', name, counted, relname), ' UNION ALL ') "
      "FROM pg_class c CROSS JOIN LATERAL (SELECT relname::text AS name, '*' AS counted "
      "UNION ALL SELECT relname || '.' || attname, quote_ident(attname) FROM pg_attribute "
      "WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) counts "
      "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'");
  std::map<std::string, std::int64_t> counts;
  for (const auto& row : connection.run(query))
    counts[row[0].c_str()] = row[1].as<std::int64_t>();
  return counts;
}

/// Runs `sql`, and returns the tables that lost rows or no longer exist, and the columns of the other tables
/// that lost values of rows that are still there, or no longer exist.
Names deleted_by(db::Connection& connection, const std::string& sql) {
  const auto before = contents(connection);
  connection.run(sql);
  const auto after = contents(connection);
  Names deleted;
  for (const auto& [name, count] : before) {
    const auto table = name.substr(0, name.find('.'));
    if (after.count(table) == 0) {
      deleted.insert(table);
      continue;
    }
    const auto now = after.find(name);
    const auto lost = count - (now == after.end() ? 0 : now->second);
    const auto lost_rows = before.at(table) - after.at(table);
    const bool is_kept = now != after.end() && lost <= 0;
    const bool went_with_rows = name != table && lost_rows > 0 && lost <= lost_rows;
    // The number of the database is drawn anew.
    const bool is_number = name == "tokens.home" || name == "accounts.mailroom_home";
    if (!is_kept && !went_with_rows && !is_number) deleted.insert(name);
  }
  return deleted;
}

Names declared_in(const std::string& sql) {
  Names names;
  for (const auto& loss : schema::declared_losses(sql))
    names.insert(loss.condition.empty() ? loss.name() : loss.table);
  return names;
}

/// The number of rows that it is said to delete of each table.
std::map<std::string, std::int64_t> said_rows(db::Connection& connection,
                                              const schema::Migration& migration) {
  std::map<std::string, std::int64_t> rows;
  for (const auto& loss : schema::count_losses(connection, {{&migration, schema::Direction::down}}))
    if (loss.column.empty()) rows[loss.table] += loss.rows;
  return rows;
}

/// A message with two recipients and a file, one for tomorrow, and a token of an action of one's own, which
/// belongs to account 2.
void make_messages(db::Connection& connection) {
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  connection.run(
      "SELECT mailroom_send(ARRAY['a@mail.example', 'b@mail.example'], subject => 'a', text => 'a', "
      "attachments => '[{\"name\": \"a\", \"content\": \"AA==\"}]'), "
      "mailroom_send(ARRAY['c@mail.example'], subject => 'c', text => 'c', send_after => now() + interval '1 day')");
  connection.run("INSERT INTO tokens (account, action) VALUES (2, 'magic_link')");
}

/// A token as only a schema without messages can keep it, beside two with a trace.
void make_token_of_message(db::Connection& connection) {
  connection.run("UPDATE tokens SET traceparent = 'of a request' WHERE account < 3");
  connection.run("INSERT INTO tokens (action, secret, message) VALUES ('activation', NULL, 1)");
}

}  // namespace

TEST_CASE("a down migration deletes what it declares and nothing else, and an up migration nothing") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  connection->run("CREATE TABLE of_others AS SELECT 1 AS x");
  connection->run(schema::embedded_migrations().front().up);
  insert_accounts(*connection, 3);
  for (std::size_t version = 1; version < schema::embedded_migrations().size(); ++version) {
    CAPTURE(version);
    CHECK(deleted_by(*connection, schema::embedded_migrations()[version].up).empty());
    CHECK(declared_in(schema::embedded_migrations()[version].up).empty());
  }
  const auto& functions = schema::embedded_functions().migration;
  connection->transact([&](pqxx::work& transaction) { db::Connection::execute(transaction, functions.up); });
  schema::Migrator(*connection, test_author()).claim(schema::embedded_migrations().back().version);
  attach(database)->claim({.limit = 2, .partial = true});
  make_queue(*connection, "second", recoveries_only);
  connection->run("UPDATE tokens SET consumed_at = 1 WHERE account = 1");
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 2");
  connection->run(
      "SELECT mailroom_record_operation('reload', NULL, '{}'), mailroom_record_operation('adopt', NULL, '{}'), "
      "mailroom_record_operation('suppress', NULL, '{}')");
  make_messages(*connection);
  for (const auto* table :
       {"accounts", "tokens", "jobs", "mailroom_batches", "mailroom_operations", "mailroom_messages",
        "mailroom_attachments", "mailroom_schedule", "mailroom_actions"})
    REQUIRE(contents(*connection)[table] > 0);
  CHECK(deleted_by(*connection, functions.down).empty());
  for (auto version = schema::embedded_migrations().size(); version-- > 0;) {
    CAPTURE(version);
    const auto& migration = schema::embedded_migrations()[version];
    if (version == 1) make_token_of_message(*connection);
    const auto said = said_rows(*connection, migration);
    const auto before = contents(*connection);
    CHECK(deleted_by(*connection, migration.down) == declared_in(migration.down));
    const auto after = contents(*connection);
    for (const auto& [table, rows] : said) {
      CAPTURE(table);
      if (after.count(table) > 0) CHECK(before.at(table) - after.at(table) == rows);
    }
  }
}

TEST_CASE("the rows that a migration down deletes are counted beforehand") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  make_queue(*connection, "second", recoveries_only);
  make_messages(*connection);
  const auto state = schema::read_schema_state(*connection);
  std::string text;
  for (const auto& loss : schema::count_losses(
           *connection, schema::plan_down(schema::embedded_migrations(), state, std::nullopt)))
    text += loss.name() + " " + std::to_string(loss.rows) + "\n";
  CHECK(
      text ==
      "mailroom_suppressions 0\nmailroom_bounces 0\nmailroom_messages 2\nmailroom_attachments 1\nmailroom_schedule 1\nmailroom_topics 0\nmailroom_owners 1\nmailroom_limits 0\n"
      "mailroom_actions 4\nmailroom_id_secret 1\nmailroom_keys 0\ntokens WHERE message IS NOT NULL 2\n"
      "tokens WHERE action::text NOT IN ('activation', 'password_recovery') 1\n"
      "mailroom_home 1\nmailroom_operations 2\nmailroom_outcomes 0\nmailroom_sinks 0\nmailroom_budgets 0\n"
      "mailroom_queues 1\nmailroom_deliveries 0\nmailroom_gaps 0\nmailroom_batches 1\njobs WHERE job_type <> 'mailroom' 1\n"
      "tokens WHERE message IS NOT NULL 0\ntokens.traceparent 0\njobs 1\ntokens 3\naccounts 3\n");
  const schema::Migration column{
      0, "column", "-", "-- deletes: column accounts.activated_at\n-- deletes: column accounts.gone\n"};
  connection->run("UPDATE tokens SET consumed_at = 1 WHERE account = 1");
  const auto losses = schema::count_losses(*connection, {{&column, schema::Direction::down}});
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].name() == "accounts.activated_at");
  CHECK(losses[0].rows == 1);
}

}  // namespace mailroom::test::losses_test
