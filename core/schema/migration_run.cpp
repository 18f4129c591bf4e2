// The hints for SQLSTATEs, and the invalid index that a failed CREATE INDEX CONCURRENTLY leaves.

#include <algorithm>
#include <fmt/format.h>
#include <thread>

#include "base/clock.hpp"
#include "schema/migrator.hpp"

namespace mailroom::schema {
namespace {

std::string who_may(db::Connection& connection) {
  const auto rows = connection.run(
      "SELECT current_user AS role, pg_get_userbyid(relowner) AS owner FROM pg_class "
      "WHERE oid = to_regclass(format('%I.accounts', current_schema()))");
  if (rows.empty()) {
    return fmt::format(
        "the role {} lacks the privilege; run the command as the owner of the database, or see "
        "docs/security.md for what to grant",
        connection.run("SELECT current_user").text());
  }
  const auto user = rows[0].text("role");
  const auto owner = rows[0].text("owner");
  if (user == owner) return {};
  return fmt::format("connected as {}; run migrations as the owner of the tables, {}", user, owner);
}

/// What helps where an event trigger forces row security on the tables of a migration, as some hosts have
/// one; empty if none can have.
std::string bypass_for_forced_rows(db::Connection& connection) {
  const auto rows = connection.run(R"(
SELECT format('ALTER ROLE %I BYPASSRLS', r.rolname) FROM pg_roles r
WHERE r.rolname = current_user AND NOT r.rolsuper AND NOT r.rolbypassrls
  AND EXISTS (SELECT FROM pg_event_trigger WHERE evtevent = 'ddl_command_end' AND evtenabled <> 'D'))");
  if (rows.empty()) return {};
  return "an event trigger forces row security on new tables, and hides their rows from their owner; as a superuser: " +
         rows.text();
}

/// The statement that lets the role use the schema of pgcrypto, or nothing if it may.
std::string grant_for_pgcrypto(db::Connection& connection) {
  const auto rows = connection.run(R"(
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, current_user)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pgcrypto' AND NOT has_schema_privilege(n.oid, 'USAGE'))");
  return rows.empty() ? std::string() : rows.text();
}

std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

std::array<std::int64_t, 2> lock_keys(db::Connection& connection) {
  const auto row = connection.run("SELECT current_database(), coalesce(current_schema(), '') AS schema")[0];
  const auto database = row.text("current_database");
  const auto schema = row.text("schema");
  return {golang_migrate_key(database, schema, "schema_migrations"),
          golang_migrate_key("/" + database, schema, "schema_migrations")};
}

/// Takes both locks or neither.
bool try_to_lock(db::Connection& connection, const std::array<std::int64_t, 2>& keys) {
  return connection
      .run(
          "SELECT CASE WHEN NOT pg_try_advisory_lock($1::bigint) THEN false "
          "WHEN pg_try_advisory_lock($2::bigint) THEN true ELSE NOT pg_advisory_unlock($1::bigint) END",
          keys[0], keys[1])
      .value<bool>();
}

/// The session that holds one of the locks: pid and application_name; no row if none does.
db::Rows lock_holder(db::Connection& connection, const std::array<std::int64_t, 2>& keys) {
  return connection.run(
      "SELECT l.pid, coalesce(a.application_name, '') AS name FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid "
      "= l.pid "
      "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.pid <> pg_backend_pid() "
      "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
      "AND (l.classid::bigint << 32) + l.objid::bigint IN ($1::bigint, $2::bigint) LIMIT 1",
      keys[0], keys[1]);
}

Error locked_by_another(db::Connection& connection, const std::array<std::int64_t, 2>& keys) {
  const auto rows = lock_holder(connection, keys);
  const std::string message = "another migration is running on this schema";
  if (rows.empty()) return Error(ExitCode::locked, message, "it has just ended: run the command again");
  const auto pid = rows[0].number("pid");
  const auto name = rows[0].text("name");
  return Error(ExitCode::locked, message,
               fmt::format("pid {} holds its lock ({}): wait for it with --wait 5m, or terminate it with "
                           "SELECT pg_terminate_backend({})",
                           pid, name.empty() ? "no application_name, as with golang-migrate" : name, pid));
}

}  // namespace

MigrationRun::MigrationRun(db::Connection& connection, const MigrationStep& step)
    : connection_(connection), step_(step), statements_(split_statements(step.text())) {}

void MigrationRun::run(pqxx::transaction_base& transaction) {
  const bool alone = runs_alone();
  for (const auto& statement : statements_) {
    current_ = &statement;
    db::Connection::execute(transaction, alone ? without_concurrently(statement.text) : statement.text);
  }
  current_ = nullptr;
}

void MigrationRun::run_alone() {
  // The session has no time limits: the statement waits for old transactions, but no session waits behind it.
  current_ = &statements_.front();
  drop_invalid_index();
  connection_.run(current_->text);
  current_ = nullptr;
}

void MigrationRun::drop_invalid_index() {
  const auto rows = connection_.run(
      "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
      "JOIN pg_namespace n ON n.oid = c.relnamespace "
      "WHERE n.nspname = current_schema() AND lower(c.relname) = lower($1) AND NOT i.indisvalid",
      created_index(current_->text));
  for (const auto& name : rows.values<std::string>())
    connection_.run("DROP INDEX CONCURRENTLY " + name);
}

std::string MigrationRun::hint_for(const db::DatabaseError& error) const {
  const auto& state = error.sqlstate();
  if (state == "42501") {
    // The row that records a version is the first that is refused.
    const bool is_of_row = current_ == nullptr || std::string_view(error.what()).find("row-level security") !=
                                                      std::string_view::npos;
    auto bypass = is_of_row ? bypass_for_forced_rows(connection_) : std::string();
    return bypass.empty() ? who_may(connection_) : bypass;
  }
  if (state == db::sqlstate::undefined_function) {
    if (auto grant = grant_for_pgcrypto(connection_); !grant.empty()) return grant;
  }
  if (!error.hint().empty()) return error.hint();
  if (state == "42P07" || state == "42710" || state == "42723") {
    return "another object has that name in this schema: rename it, or give mailroom its own schema";
  }
  if (state == "2BP01") return "an object outside mailroom depends on it: drop or change that object first";
  if (state == "57014") return "the statement was cancelled";
  return {};
}

Error MigrationRun::explained(const db::DatabaseError& error) const {
  auto file = step_.file();
  std::string where = "its commit";
  std::string statement;
  if (current_ != nullptr) {
    const auto line = current_->line + std::max(error.line(), 1) - 1;
    where = fmt::format("line {}", line);
    if (const auto place =
            step_.direction == Direction::up && step_.migration == &embedded_functions().migration
                ? embedded_functions().place_of(line)
                : std::nullopt) {
      file = place->file;
      where = fmt::format("line {}", place->line);
    }
    statement = "\n  " + shortened_statement(current_->text, 76);
  }
  auto hint = hint_for(error);
  if (!hint.empty()) hint += "; ";
  hint += runs_alone() ? "the version is unchanged, and mailroom migrate tries it again"
                       : "the migration was rolled back, and the version is unchanged";
  return Error(ExitCode::schema,
               fmt::format("migration {} failed at {}: {}{}", file, where, error.what(), statement), hint);
}

std::string oldest_holder(db::Connection& connection, Milliseconds at_least) {
  const auto rows = connection.run(
      "SELECT l.pid, coalesce(nullif(a.application_name, ''), 'without a name') AS name, "
      "floor(extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS open_ms "
      "FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid "
      "WHERE l.granted AND c.relkind = 'r' AND l.pid <> pg_backend_pid() "
      "AND c.relnamespace = to_regnamespace(quote_ident(current_schema())) "
      "AND a.xact_start <= clock_timestamp() - $1::bigint * interval '1 ms' "
      "AND a.datname = current_database() ORDER BY a.xact_start LIMIT 1",
      at_least.count());
  if (rows.empty()) return {};
  const Milliseconds open(rows[0].number("open_ms"));
  const auto shown = open < std::chrono::seconds(10) ? open : std::chrono::floor<std::chrono::seconds>(open);
  return fmt::format("pid {} ({}), whose transaction has been open for {}", rows[0].number("pid"),
                     rows[0].text("name"), format_duration(shown));
}

std::int64_t golang_migrate_key(const std::string& database, const std::string& schema,
                                const std::string& table) {
  constexpr std::uint32_t salt = 1486364155;
  constexpr char separator = '\0';
  return crc32(schema + separator + table + separator + database) * salt;
}

void take_migration_lock(db::Connection& connection, Milliseconds wait,
                         const std::function<void(const std::string& text)>& tell) {
  constexpr Milliseconds interval{100};
  constexpr Milliseconds silence{1000};
  const auto keys = lock_keys(connection);
  const auto start = steady_now();
  for (bool told = !tell; !try_to_lock(connection, keys);) {
    const auto now = steady_now();
    if (now >= start + wait) throw locked_by_another(connection, keys);
    if (!told && now >= start + silence) {
      for (const auto& row : lock_holder(connection, keys))
        tell(fmt::format("waiting for another migration, of pid {} ({})", row.text("pid"), row.text("name")));
      told = true;
    }
    std::this_thread::sleep_for(interval);
  }
}

}  // namespace mailroom::schema
