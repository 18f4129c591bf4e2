// Does what an application does: inserts an account, or asks for a message, which must get a token, and takes
// both back.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/printable.hpp"
#include "db/errors.hpp"
#include "db/search_path.hpp"
#include "doctor/subject.hpp"
#include "status/trigger_status.hpp"
#include "status/unmailed.hpp"

namespace mailroom::doctor {
namespace {

/// One of the two ways in: `what` gets a token.
struct WayIn {
  const char* what;
  const char* token;
  const char* may_sql;
  const char* insert_sql;  ///< $1: an address
  const char* token_sql;   ///< whether the address has a token
};

constexpr WayIn by_account{
    .what = "an account inserted",
    .token = "activation token",
    .may_sql = "SELECT current_user AS role, has_any_column_privilege('accounts', 'INSERT') AS may",
    .insert_sql = "INSERT INTO accounts (email, login) VALUES ($1, $1)",
    .token_sql =
        "SELECT EXISTS (SELECT FROM accounts a JOIN tokens t ON t.account = a.id WHERE a.email = $1)"};

constexpr WayIn by_message{
    .what = "a message asked for",
    .token = "token",
    .may_sql = R"(
SELECT current_user AS role, coalesce(bool_or(has_function_privilege(p.oid, 'EXECUTE')), false) AS may
FROM pg_proc p JOIN pg_class c ON c.oid = 'mailroom_messages'::regclass
WHERE p.proname = 'mailroom_send' AND p.pronamespace = c.relnamespace)",
    .insert_sql =
        "SELECT mailroom_send(ARRAY[$1::text], subject => 'mailroom doctor', text => 'mailroom doctor')",
    .token_sql =
        "SELECT EXISTS (SELECT FROM mailroom_messages m JOIN tokens t ON t.message = m.id "
        "WHERE m.recipients = ARRAY[$1::text])"};

struct InsertTrial {
  std::string role;  ///< whose privileges it had
  bool is_allowed = false;
  bool has_token = false;
};

/// Inserts as `role`, or as the role of the session if that is empty, in a transaction that it rolls back.
/// Ids of both sequences remain used.
InsertTrial try_insert(db::Connection& connection, const WayIn& way, const std::string& role,
                       const std::string& address) {
  InsertTrial trial;
  connection.dry_run([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION READ WRITE");
    if (!role.empty()) db::Connection::execute(transaction, "SET LOCAL ROLE " + transaction.quote_name(role));
    const auto row = db::Connection::execute(transaction, way.may_sql)[0];
    trial.role = row.text("role");
    trial.is_allowed = row.flag("may");
    if (!trial.is_allowed) return;
    db::Connection::execute(transaction, way.insert_sql, address);
    db::Connection::execute(transaction, "SET LOCAL ROLE NONE");
    trial.has_token = db::Connection::execute(transaction, way.token_sql, address).value<bool>();
  });
  return trial;
}

/// The functions that an insert of a token calls as the owner of the tables, and that he may not execute.
constexpr const char* missing_functions_sql = R"(
SELECT DISTINCT format('GRANT EXECUTE ON FUNCTION %s TO %I;', p.oid::regprocedure, pg_get_userbyid(c.relowner))
FROM pg_class c JOIN pg_attrdef d ON d.adrelid = c.oid
  JOIN pg_depend n ON n.classid = 'pg_attrdef'::regclass AND n.objid = d.oid AND n.refclassid = 'pg_proc'::regclass
  JOIN pg_proc p ON p.oid = n.refobjid
WHERE c.relnamespace = quote_ident($1)::regnamespace AND c.relname IN ('accounts', 'tokens')
  AND NOT has_function_privilege(c.relowner, p.oid, 'EXECUTE')
ORDER BY 1)";

/// True if the trigger that gives a token its id does not fire.
bool lacks_ids(db::Connection& connection) {
  const auto status = connection.alone(
      [](pqxx::transaction_base& transaction) { return status::read_trigger_status(transaction); });
  return std::ranges::any_of(status.silent,
                             [](const auto& trigger) { return trigger.name == "before_token_insert"; });
}

Finding refused(db::Connection& connection, const WayIn& way, const std::string& role,
                const db::DatabaseError& error) {
  const auto who = role.empty() ? "the role of this session" : shown_text(role);
  if (error.sqlstate() == db::sqlstate::insufficient_privilege) {
    const auto grants = qualified_rows(connection, missing_functions_sql).values<std::string>();
    const std::string hint = grants.empty() ? "docs/security.md lists what the application's role needs"
                                            : "as the owner of the functions";
    return failure(fmt::format("{} as {} is refused: {}", way.what, who, error.what()),
                   status::fixes(status::FixKind::grant, grants), hint);
  }
  if (lacks_ids(connection)) {
    return failure(fmt::format("no account and no message can be inserted: {}", error.what()), {},
                   "the check triggers says what is wrong with before_token_insert, and how to repair it");
  }
  // Of the application's own: a column that must have a value, a constraint, or a trigger.
  const bool is_of_application = error.sqlstate().starts_with("23") || error.sqlstate() == "P0001";
  if (!is_of_application) throw error;
  return not_checked(
      &way == &by_account
          ? fmt::format("an account with nothing but email and login is refused: {}", error.what())
          : fmt::format("a message to an address of its own is refused: {}", error.what()));
}

/// Accounts and messages whose trigger did not fire.
void judge_recent(db::Connection& connection, Findings& findings) {
  const auto home = db::quoted_schema(connection);
  const auto now = connection.server_time();
  const auto accounts = connection.alone(
      [](pqxx::transaction_base& transaction) { return status::count_accounts_without_token(transaction); });
  if (const auto found = health::judge_accounts_without_token(accounts, home))
    findings.push_back(finding_of(*found));
  const auto lost = connection.alone([&](pqxx::transaction_base& transaction) {
    return status::read_lost_messages(transaction, now - std::chrono::days(1), now + std::chrono::seconds(1));
  });
  for (const auto& found : health::judge_lost_messages(lost, home))
    findings.push_back(finding_of(found));
}

/// What keeps the application's role from asking for mails before it tries, the fix and a hint: $2 the role.
constexpr const char* obstacles_sql = R"(
SELECT format('%s may not use the schema %s', r.rolname, $1::text) AS obstacle,
  format('GRANT USAGE ON SCHEMA %I TO %I;', $1::text, r.rolname) AS fix, '' AS hint
FROM pg_roles r WHERE r.rolname = $2::text AND NOT has_schema_privilege(r.oid, $1::text, 'USAGE')
UNION ALL
SELECT format('%s may neither call mailroom_send() nor insert accounts', r.rolname),
  CASE WHEN p.oid IS NOT NULL THEN format('GRANT EXECUTE ON FUNCTION %I.mailroom_send TO %I;', $1::text, r.rolname) ELSE '' END,
  CASE WHEN p.oid IS NULL THEN 'the check drift makes the function, which is missing; ' ELSE '' END ||
  format('for sign-ups: GRANT INSERT (email, login) ON %I.accounts TO %I;', $1::text, r.rolname)
FROM pg_roles r LEFT JOIN pg_proc p ON p.proname = 'mailroom_send' AND p.pronamespace = quote_ident($1)::regnamespace
WHERE r.rolname = $2::text AND NOT has_any_column_privilege(r.oid, format('%I.accounts', $1::text), 'INSERT')
  AND has_function_privilege(r.oid, p.oid, 'EXECUTE') IS NOT TRUE
UNION ALL
SELECT format('transactions of %s are read-only by default', r.rolname),
  CASE WHEN s.setdatabase = 0 THEN format('ALTER ROLE %I RESET default_transaction_read_only;', r.rolname)
       ELSE format('ALTER ROLE %I IN DATABASE %I RESET default_transaction_read_only;', r.rolname, current_database()) END, ''
FROM pg_roles r JOIN pg_db_role_setting s ON s.setrole = r.oid, unnest(s.setconfig) c
WHERE r.rolname = $2::text AND split_part(c, '=', 1) = 'default_transaction_read_only' AND split_part(c, '=', 2)::boolean
  AND (s.setdatabase = 0 OR s.setdatabase = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())))";

bool has_obstacles(db::Connection& connection, const std::string& role, Findings& findings) {
  const auto rows = qualified_rows(connection, obstacles_sql, role);
  for (const auto& row : rows) {
    std::vector<status::Fix> fix;
    const auto grant = row.text("fix");
    if (!grant.empty()) fix.emplace_back(status::FixKind::grant, grant);
    findings.push_back(failure(shown_text(row.text("obstacle")), std::move(fix), row.text("hint")));
  }
  return !rows.empty();
}

/// True if the session can take the role on.
bool may_become(db::Connection& connection, const std::string& role, Findings& findings) {
  const auto rows = connection.run(
      "SELECT pg_has_role(oid, 'MEMBER') AS may, format('GRANT %I TO %I;', rolname, current_user) AS grant, "
      "current_user AS role "
      "FROM pg_roles WHERE rolname = $1",
      role);
  if (rows.empty()) {
    findings.push_back(failure(fmt::format("there is no role {}", shown_text(role)), {},
                               "name the role of the application with --as"));
    return false;
  }
  if (rows[0].flag("may")) return true;
  findings.push_back(failure(
      fmt::format("{} may not take on the role {}", shown_text(rows[0].text("role")), shown_text(role)),
      {{status::FixKind::grant, rows[0].text("grant")}}));
  return false;
}

/// Returns false if the role may not go this way.
bool judge_way(db::Connection& connection, const WayIn& way, const std::string& role,
               const std::string& address, Findings& findings) {
  try {
    const auto trial = try_insert(connection, way, role, address);
    if (!trial.is_allowed) return false;
    const auto what = fmt::format("{} as {} gets", way.what, shown_text(trial.role));
    findings.push_back(
        trial.has_token
            ? fine(fmt::format("{} its {}; rolled back", what, way.token))
            : failure(
                  fmt::format("{} no {}", what, way.token), {},
                  "the check triggers says which of them is missing, disabled or does not fire; a rule or a "
                  "trigger of your own may take the row away"));
  } catch (const db::DatabaseError& error) {
    findings.push_back(refused(connection, way, role, error));
  }
  return true;
}

void judge_insert(Subject& subject, Findings& findings) {
  auto& connection = *subject.connection;
  const auto& role = subject.sources.application_role;
  if (!role.empty() && (!may_become(connection, role, findings) || has_obstacles(connection, role, findings)))
    return;
  const auto address =
      fmt::format("mailroom-doctor-{}@mail.invalid", subject.sources.now().time_since_epoch().count());
  const bool inserts = judge_way(connection, by_account, role, address, findings);
  if (!role.empty()) {
    judge_way(connection, by_message, role, address, findings);
  } else if (!inserts) {
    const std::string own = connection.run("SELECT current_user").text();
    findings.push_back(not_checked(fmt::format(
        "{} may not insert accounts; mailroom doctor --as ROLE tries it as the application's role",
        shown_text(own))));
  }
}

}  // namespace

Findings check_insert(Subject& subject) {
  Findings findings;
  if (subject.in_recovery) {
    findings.push_back(not_checked("a standby takes no account"));
  } else if (!subject.gives_good_ids) {
    // An insert that is rolled back moves a sequence nevertheless.
    findings.push_back(not_checked("a sequence has to be repaired first"));
  } else {
    judge_insert(subject, findings);
  }
  judge_recent(*subject.connection, findings);
  return findings;
}

}  // namespace mailroom::doctor
