// The checks of the connection and the server: version, standby, pooler, clock and settings.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "db/conninfo.hpp"
#include "doctor/subject.hpp"

namespace mailroom::doctor {
namespace {

using std::chrono::milliseconds;

constexpr int oldest_version = 140000;

/// The settings ($1 names, $2 wanted values) with another value in a new session, each with the statement
/// that resets it at its source, or with a hint if no statement can.
constexpr const char* deviations_sql = R"(
SELECT s.name, s.reset_val || coalesce(s.unit, '') AS value,
  CASE s.source
    WHEN 'user' THEN format('ALTER ROLE %I RESET %I;', session_user, s.name)
    WHEN 'database' THEN format('ALTER DATABASE %I RESET %I;', current_database(), s.name)
    WHEN 'database user' THEN format('ALTER ROLE %I IN DATABASE %I RESET %I;', session_user,
                                     current_database(), s.name)
    WHEN 'global' THEN format('ALTER ROLE ALL RESET %I;', s.name)
    WHEN 'client' THEN NULL
    WHEN 'session' THEN NULL
    WHEN 'command line' THEN NULL
    ELSE format('ALTER SYSTEM SET %I = %s;', s.name, w.value) END AS fix,
  CASE s.source
    WHEN 'client' THEN format('remove %s from the options of the connection string or PGOPTIONS', s.name)
    WHEN 'session' THEN format('reset %s with ALTER ROLE or ALTER DATABASE, whichever has set it', s.name)
    WHEN 'command line' THEN format('start the server without -c %s=%s', s.name, s.reset_val) END AS hint
FROM unnest($1::text[], $2::text[]) w (name, value) JOIN pg_settings s ON s.name = w.name
WHERE s.reset_val <> w.value
ORDER BY s.name)";

std::string reason_of(const std::string& setting, const std::string& value) {
  if (setting == "default_transaction_read_only")
    return "transactions are read-only by default: INSERT INTO accounts fails";
  const auto* const consequence = setting == "fsync"
                                      ? "a crash of the machine can lose or corrupt committed tokens"
                                      : "the tables of the queue grow and slow down";
  return fmt::format("{} is {}: {}", setting, value, consequence);
}

/// A finding for each of the settings `names` that is not as `wanted`: a failure if no account can be
/// inserted.
Findings judge_settings(db::Connection& connection, const std::string& names, const std::string& wanted) {
  Findings findings;
  for (const auto& row : connection.run(deviations_sql, names, wanted)) {
    std::vector<std::string> statements;
    const bool is_read_only = row.view("name") == "default_transaction_read_only";
    if (!row.is_null("fix") && is_read_only)
      statements.emplace_back("SET default_transaction_read_only = off;");
    if (!row.is_null("fix")) statements.push_back(row.text("fix"));
    if (!statements.empty() && statements.back().starts_with("ALTER SYSTEM"))
      statements.emplace_back("SELECT pg_reload_conf();");
    // Sign-up is down then, unless it is so for this role or session alone: it may be one that only reads.
    const bool is_for_all = std::ranges::any_of(statements, [](const auto& statement) {
      return statement.starts_with("ALTER DATABASE") || statement.starts_with("ALTER SYSTEM") ||
             statement.starts_with("ALTER ROLE ALL");
    });
    const auto finding = is_read_only && is_for_all ? failure : warning;
    findings.push_back(finding(reason_of(row.text("name"), row.text("value")),
                               status::fixes(status::FixKind::reset_setting, statements), row.text("hint")));
  }
  return findings;
}

ServerFacts read_server_facts(db::Connection& connection) {
  const auto row = connection.run(R"(
SELECT current_setting('server_version_num') AS version, split_part(current_setting('server_version'), ' ', 1) AS version_text,
  pg_is_in_recovery() AS in_recovery, current_setting('server_encoding') AS encoding)")[0];
  return {.version = row.number<int>("version"),
          .version_text = row.text("version_text"),
          .in_recovery = row.flag("in_recovery"),
          .encoding = row.text("encoding"),
          .target = {}};
}

/// Makes the session read-only, so that no check can change anything, and keeps it from waiting behind a
/// locked table. Not behind a pooler, which would pass the settings on to other clients.
void limit_session(Subject& subject) {
  if (subject.pooler != db::PoolerKind::none) return;
  subject.connection->run("SET default_transaction_read_only = on");
  subject.connection->run("SET lock_timeout = '2s'");
}

}  // namespace

Findings judge_server(const ServerFacts& facts) {
  Findings findings;
  const auto server = fmt::format("PostgreSQL {} at {}", facts.version_text, facts.target);
  if (facts.version < oldest_version) {
    findings.push_back(failure(server + " is too old", {}, "upgrade the server to PostgreSQL 14 or newer"));
  }
  if (facts.in_recovery) {
    findings.push_back(
        failure(server + " is a standby, on which nothing can be claimed", {},
                "set database.url to the primary, or to several hosts with target_session_attrs=read-write"));
  }
  if (facts.encoding != "UTF8") {
    findings.push_back(warning(
        fmt::format("the encoding of the database is {}, which cannot store every address and login",
                    facts.encoding),
        {}, "move the data to a database created with createdb --template template0 --encoding UTF8"));
  }
  return or_fine(findings, server);
}

Finding judge_clock(milliseconds ahead, milliseconds round_trip) {
  const auto off = std::chrono::abs(ahead);
  const auto measured = fmt::format("the server's clock is {} {} this host's", format_duration(off),
                                    ahead.count() < 0 ? "behind" : "ahead of");
  if (off <= milliseconds(2000) + round_trip / 2) return fine("within 2s of the server's");
  return warning(measured + "; only the server's clock decides expiry, and times on this host may be wrong",
                 {{status::FixKind::set_clock, "timedatectl set-ntp true"}},
                 "on the host whose clock is wrong");
}

Findings check_database(Subject& subject) {
  const auto& url = subject.settings->database.url;
  subject.connection =
      std::make_unique<db::Connection>(db::configured_database(*subject.settings), "mailroom doctor");
  auto& connection = *subject.connection;
  const auto own_pid = connection.run("SELECT pg_backend_pid()").value<int>();
  if (own_pid != connection.backend_pid()) subject.pooler = db::PoolerKind::session;

  auto facts = read_server_facts(connection);
  facts.target = db::describe_target(url);
  auto findings = judge_server(facts);
  subject.server_usable = facts.version >= oldest_version;
  subject.in_recovery = facts.in_recovery;
  if (!subject.server_usable) return findings;
  // Every session sets it: without that the server tells where it comes from.
  if (subject.pooler == db::PoolerKind::none) connection.run("RESET default_transaction_read_only");
  for (auto& read_only : judge_settings(connection, "{default_transaction_read_only}", "{off}"))
    findings.push_back(std::move(read_only));
  limit_session(subject);
  return findings;
}

Findings check_pooler(Subject& subject) {
  auto& connection = *subject.connection;
  subject.pooler = db::find_pooler(connection, db::configured_database(*subject.settings), "mailroom doctor");
  if (subject.pooler == db::PoolerKind::none) return {fine("none")};
  if (subject.pooler == db::PoolerKind::session) return {fine("a pooler in session mode")};
  const auto direct = db::direct_conninfo(connection);
  std::vector<status::Fix> fix;
  if (!direct.empty())
    fix.emplace_back(status::FixKind::connect_directly, "export MAILROOM_DATABASE_URL='" + direct + "'");
  return {failure(db::pooler_text(subject.pooler), std::move(fix), db::pooler_hint)};
}

Findings check_clock(Subject& subject) {
  const auto before = subject.sources.now();
  const auto theirs = subject.connection->run("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
                          .value<std::int64_t>();
  const auto after = subject.sources.now();
  const auto round_trip = std::chrono::duration_cast<milliseconds>(after - before);
  const auto ours = std::chrono::duration_cast<milliseconds>(before.time_since_epoch()) + round_trip / 2;
  return {judge_clock(milliseconds(theirs) - ours, round_trip)};
}

Findings check_server_settings(Subject& subject) {
  return or_fine(judge_settings(*subject.connection, "{autovacuum,fsync}", "{on,on}"),
                 "none endangers a token");
}

}  // namespace mailroom::doctor
