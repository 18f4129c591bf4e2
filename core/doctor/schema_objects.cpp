#include "doctor/schema_objects.hpp"

#include <array>
#include <regex>

#include "schema/migration.hpp"

namespace mailroom {
namespace {

constexpr std::array<ExpectedTable, 6> tables{{
    {"accounts",
     "id email status login created_at status_changed_at activated_at suspended_at unsuspended_at"},
    {"tokens", "id action secret code account expires_at consumed_at created_at"},
    {"jobs", "job_type last_seq"},
    {"mailroom_batches",
     "id job_type ids collector claimed_by attempts claimed_at emitted_at dead_at emitted "
     "skipped_expired skipped_consumed skipped_status skipped_invalid skipped_ids cursor open_from gap_ids "
     "earlier_attempts"},
    {"mailroom_gaps", "id ids horizon pending"},
    {"mailroom_operations", "id at kind actor db_user reason queue account details"},
}};

constexpr std::array<ExpectedIndex, 19> indexes{{
    {"accounts_pkey", "accounts", "PRIMARY KEY (id)"},
    {"accounts_email_key", "accounts", "UNIQUE (email)"},
    {"accounts_login_key", "accounts", "UNIQUE (login)"},
    {"accounts_id_status_idx", "accounts", {}},
    {"tokens_pkey", "tokens", "PRIMARY KEY (id)"},
    {"tokens_secret_key", "tokens", "UNIQUE (secret)"},
    {"tokens_id_expires_consumed_action_idx", "tokens", {}},
    {"tokens_account_idx", "tokens", {}},
    {"tokens_created_at_idx", "tokens", {}},
    {"tokens_consumed_at_idx", "tokens", {}},
    {"jobs_pkey", "jobs", "PRIMARY KEY (job_type)"},
    {"mailroom_batches_pkey", "mailroom_batches", "PRIMARY KEY (id)"},
    {"mailroom_batches_state_idx", "mailroom_batches", {}},
    {"mailroom_batches_open_idx", "mailroom_batches", {}},
    {"mailroom_batches_claimed_at_idx", "mailroom_batches", {}},
    {"mailroom_gaps_pkey", "mailroom_gaps", "PRIMARY KEY (id)"},
    {"mailroom_operations_pkey", "mailroom_operations", "PRIMARY KEY (id)"},
    {"mailroom_operations_at_idx", "mailroom_operations", {}},
    {"mailroom_operations_account_idx", "mailroom_operations", {}},
}};

constexpr std::array<ExpectedTrigger, 8> triggers{{
    {"before_token_insert", "tokens", true, "the cursor can move past a token that is committed late"},
    {"after_token_inserted", "tokens", false, "collectors see a new token only at their next poll"},
    {"after_account_insert", "accounts", true, "a new account gets no activation token"},
    {"before_account_insert", "accounts", false,
     "an address with a control character is accepted, and its tokens are skipped"},
    {"before_account_address_change", "accounts", false,
     "an address with a control character is accepted, and its tokens are skipped"},
    {"before_account_status_change", "accounts", true,
     "status changes get no timestamp, and ending a suspension can activate an account"},
    {"after_token_consumed", "tokens", true, "consuming an activation token does not activate the account"},
    {"after_account_suspension", "accounts", false, "suspensions are not recorded"},
}};

/// Each function, whether it is independent of the caller's search_path, and the statement that makes it so.
/// A stable set-returning SQL function is exempt: queries inline it, so its names resolve as theirs.
constexpr const char* functions_sql = R"(
SELECT p.proname,
  p.prosqlbody IS NOT NULL
    OR format('search_path=%I, pg_temp', current_schema()) = ANY (p.proconfig) IS TRUE
    OR (l.lanname = 'sql' AND p.proretset AND p.provolatile = 's' AND p.proconfig IS NULL),
  format('ALTER FUNCTION %s SET search_path = %I, pg_temp;', p.oid::regprocedure, current_schema())
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = quote_ident(current_schema())::regnamespace
  AND NOT EXISTS (
    SELECT FROM pg_depend d
    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'))";

}  // namespace

std::span<const ExpectedTable> expected_tables() {
  return tables;
}

std::span<const ExpectedIndex> expected_indexes() {
  return indexes;
}

std::span<const ExpectedTrigger> expected_triggers() {
  return triggers;
}

const std::set<std::string>& expected_functions() {
  static const auto names = [] {
    const std::regex form("\nCREATE (?:OR REPLACE )?FUNCTION ([a-z_0-9]+)");
    std::set<std::string> found;
    for (const auto& migration : embedded_migrations()) {
      for (std::sregex_iterator it(migration.up.begin(), migration.up.end(), form), end; it != end; ++it)
        found.insert((*it)[1]);
    }
    return found;
  }();
  return names;
}

SchemaObjects read_schema_objects(Connection& connection) {
  SchemaObjects objects;
  for (const auto& row : connection.run(R"(
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p')
  AND a.attnum > 0 AND NOT a.attisdropped)")) {
    objects.tables[row[0].c_str()].insert(row[1].c_str());
  }
  for (const auto& row : connection.run(R"(
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace)")) {
    objects.indexes[row[0].c_str()] = {.is_valid = row[1].as<bool>()};
  }
  for (const auto& row : connection.run(functions_sql)) {
    objects.functions[row[0].c_str()] = {.is_pinned = row[1].as<bool>(), .pin = row[2].c_str()};
  }
  for (const auto& row : connection.run(R"(
SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND NOT t.tgisinternal)")) {
    objects.triggers.insert(row[0].c_str());
  }
  return objects;
}

}  // namespace mailroom
