// Builds the migrations, rolls them back, and recognises tables of the first or the newest version.

#include "schema/verification.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "db/search_path.hpp"
#include "db/values.hpp"
#include "schema/completeness.hpp"
#include "schema/configured_schema.hpp"
#include "schema/schema_places.hpp"

namespace mailroom::schema {
namespace {

/// A schema and what the migrations create, from one snapshot.
struct Inspection {
  std::string schema;
  std::string quoted_schema;
  std::string crypto_schema;
  std::vector<Catalogue> built;  ///< by version
  Catalogue found;               ///< the existing objects with a name that the migrations use
};

/// Leaves the labels of created actions out of the type: they are data, also where somebody has emptied the
/// table of actions.
void remove_created_actions(pqxx::transaction_base& transaction, const std::string& quoted_schema,
                            Catalogue& found) {
  const auto type = found.find({ObjectKind::type, "token_action"});
  if (type == found.end() || found.count({ObjectKind::table, "mailroom_actions"}) == 0) return;
  for (const auto& name :
       db::Connection::execute(transaction,
                               "SELECT quote_literal(enumlabel) FROM pg_enum "
                               "WHERE enumtypid = ($1 || '.token_action')::regtype AND enumlabel <> ALL "
                               "('{activation,password_recovery,message}')",
                               quoted_schema)
           .values<std::string>()) {
    const auto label = ", " + name;
    if (const auto at = type->second.definition.find(label); at != std::string::npos)
      type->second.definition.erase(at, label.size());
  }
}

/// `only`: the version whose definitions are needed; all versions without it.
Inspection inspect_schema(db::Connection& connection, std::optional<long> only = {}) {
  if (connection.run("SELECT pg_is_in_recovery()").value<bool>()) {
    throw Error(ExitCode::failed,
                "the server is a standby, on which the migrations cannot be built for comparison",
                "connect to the primary: a standby has the same catalogue");
  }
  Inspection look;
  connection.dry_run([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE");
    const auto names = db::Connection::execute(transaction, R"(
SELECT current_schema(), quote_ident(current_schema()) AS quoted_schema,
  (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
   WHERE e.extname = 'pgcrypto') AS crypto_schema,
  (SELECT format('GRANT USAGE ON SCHEMA %I TO %I;', n.nspname, current_user)
   FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
   WHERE e.extname = 'pgcrypto' AND NOT has_schema_privilege(n.oid, 'USAGE')) AS missing_grant)")[0];
    if (!names.is_null("missing_grant")) {
      throw Error(
          ExitCode::schema,
          fmt::format(
              "this role may not use the schema {} of the extension pgcrypto, so the migrations cannot be "
              "built for comparison",
              names.text("crypto_schema")),
          names.text("missing_grant"));
    }
    look.schema = names.text("current_schema");
    look.quoted_schema = names.text("quoted_schema");
    look.crypto_schema = names.optional<std::string>("crypto_schema").value_or(look.quoted_schema);
    look.built = build_catalogues(transaction, look.schema, only);
    look.found = read_catalogue(transaction, look.schema, object_names(look.built));
    remove_created_actions(transaction, look.quoted_schema, look.found);
  });
  return look;
}

/// `catalogue` without the functions of the set.
Catalogue without_functions(Catalogue catalogue) {
  std::erase_if(catalogue, [](const auto& object) {
    return object.first.kind == ObjectKind::function &&
           !embedded_functions().file_of(object.first.name.substr(0, object.first.name.find('('))).empty();
  });
  return catalogue;
}

/// Functions are compared if they are those that this binary makes at `version`: the set belongs to the
/// newest, and other versions have the functions with which triggers begin.
Drift drift_from(const Inspection& look, long version, FunctionState functions) {
  const bool is_newest = version == embedded_migrations().back().version;
  const auto at = static_cast<std::size_t>(version);
  if (functions == (is_newest ? FunctionState::current : FunctionState::absent))
    return compare(look.built, at, look.found);
  auto built = look.built;
  for (auto& catalogue : built)
    catalogue = without_functions(std::move(catalogue));
  return compare(built, at, without_functions(look.found));
}

Verification compare_with(const Inspection& look, long version, FunctionState functions) {
  return {.schema = look.schema,
          .quoted_schema = look.quoted_schema,
          .crypto_schema = look.crypto_schema,
          .version = version,
          .drift = drift_from(look, version, functions),
          .functions = functions};
}

SchemaMatch match_of(const Inspection& look, const Drift& nearer) {
  const auto secret = look.found.find({ObjectKind::column, "tokens.secret"});
  if (secret == look.found.end()) return SchemaMatch::not_ours;
  if (secret->second.definition.rfind("bytea", 0) != 0) return SchemaMatch::earlier_form;
  return nearer.differences.empty() ? SchemaMatch::fits : SchemaMatch::differs;
}

/// Compares tables without a record with version 0, which is that of the original system, and with the
/// newest.
Verification recognise(const Inspection& look, FunctionState functions) {
  auto nearer = compare_with(look, embedded_migrations().back().version, functions);
  auto first = compare_with(look, 0, functions);
  if (first.drift.differences.size() < nearer.drift.differences.size()) nearer = std::move(first);
  nearer.is_recorded = false;
  nearer.match = match_of(look, nearer.drift);
  return nearer;
}

/// `column tokens.secret, trigger tokens.after_token_inserted and 3 more`
std::string some_of(const std::vector<Difference>& differences) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, differences.size()); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", object_kind_word(differences[i].kind),
                        differences[i].name);
  }
  if (differences.size() > shown) text += fmt::format(" and {} more", differences.size() - shown);
  return text;
}

[[noreturn]] void refuse_difference(const Verification& nearer) {
  throw Error(
      ExitCode::schema,
      fmt::format(
          "mailroom's tables have no recorded version, and match neither the first nor the newest: {} "
          "from version {}, the nearer ({})",
          nearer.differ_text(), nearer.version, some_of(nearer.drift.differences)),
      "mailroom migrate verify shows the differences; fix them, or record the version V that made the tables, "
      "which is compared with them: mailroom migrate baseline V");
}

/// Compares the migration's text with the checksum of the last row that records it as applied.
void compare_checksum(pqxx::transaction_base& transaction, const Migration& migration,
                      Verification& verification) {
  const auto rows = db::Connection::execute(
      transaction,
      "SELECT checksum = encode(sha256(convert_to(replace($2, chr(13), ''), 'UTF8')), 'hex') AS is_same, direction, " +
          db::microseconds_sql("at") +
          " AS at_us, actor, mailroom_version FROM mailroom_schema_history "
          "WHERE version = $1 AND name <> 'functions' AND direction IN ('up', 'adopt', 'baseline') "
          "ORDER BY id DESC LIMIT 1",
      migration.version, migration.up);
  if (rows.empty()) return;
  ++verification.checksums;
  if (rows[0].flag("is_same")) return;
  verification.edited.push_back({.version = migration.version,
                                 .direction = rows[0].text("direction"),
                                 .at = rows[0].moment<std::chrono::microseconds>("at_us"),
                                 .actor = rows[0].text("actor"),
                                 .made_by = rows[0].text("mailroom_version")});
}

void compare_checksums(db::Connection& connection, Verification& verification) {
  connection.alone([&](pqxx::transaction_base& transaction) {
    if (!has_table(transaction, "mailroom_schema_history")) return;
    for (const auto& migration : embedded_migrations()) {
      if (migration.version <= verification.version) compare_checksum(transaction, migration, verification);
    }
  });
}

void require_own_tables(db::Connection& connection, const SchemaState& state) {
  if (state.unrecorded || state.lacks_tokens) refuse_wrong_schema(connection);
  const bool says_applied = state.version && !state.unrecorded && !state.dirty;
  if (!says_applied || has_tables_of_our_names(connection)) return;
  throw Error(
      ExitCode::schema,
      fmt::format("schema_migrations says version {}, but none of mailroom's tables exists", *state.version),
      "another application probably keeps its own migrations there; " + advice_of_own_schema());
}

SchemaState comparable_state(db::Connection& connection) {
  const auto state = read_schema_state(connection);
  const auto newest = embedded_migrations().back().version;
  require_own_tables(connection, state);
  require_tables(connection, state);
  if (*state.version > newest) {
    throw Error(ExitCode::schema,
                fmt::format("the schema has version {}, and this mailroom knows versions up to {}",
                            *state.version, newest),
                "verify it with the newer mailroom that made it");
  }
  return state;
}

/// Adds what the newest version needs beside its definitions.
void compare_completeness(db::Connection& connection, Verification& verification) {
  if (verification.version != embedded_migrations().back().version || verification.dirty) return;
  const auto add = [&](const std::string& name, std::string expected, std::string found) {
    verification.drift.differences.push_back({.kind = ObjectKind::table,
                                              .name = name,
                                              .expected = std::move(expected),
                                              .found = std::move(found)});
  };
  const auto rows = missing_rows(connection);
  if (!rows.empty())
    add("mailroom_actions, jobs and mailroom_home",
        fmt::format("{}: mailroom migrate makes what is missing", joined(rows, ", ")), "not there");
  const auto others = other_owners(connection);
  if (!others.statements.empty())
    add("mailroom_messages", fmt::format("its owner, {}, owns all tables and functions", others.owner),
        fmt::format("{} have another owner:\n{}",
                    counted(static_cast<std::int64_t>(others.objects.size()), "object"),
                    joined(others.statements, "\n")));
}

}  // namespace

std::string Verification::differ_text() const {
  const auto count = drift.differences.size() + edited.size();
  return count == 1 ? "one thing differs" : fmt::format("{} things differ", count);
}

Verification verify_schema(db::Connection& connection) {
  const auto state = comparable_state(connection);
  if (state.unrecorded) return recognise(inspect_schema(connection), state.functions);
  // Version -1: golang-migrate failed in the first migration, and nothing was applied.
  const auto version = std::max(*state.version, 0L);
  auto verification = compare_with(inspect_schema(connection, version), version, state.functions);
  // The definitions of the other versions say where a difference comes from, and whether it is one.
  if (!verification.drift.differences.empty())
    verification = compare_with(inspect_schema(connection), version, state.functions);
  verification.dirty = state.dirty;
  compare_checksums(connection, verification);
  compare_completeness(connection, verification);
  return verification;
}

Verification verify_before_claim(db::Connection& connection, long version) {
  const auto functions = read_schema_state(connection).functions;
  const auto look = inspect_schema(connection);
  const auto nearer = recognise(look, functions);
  if (nearer.match != SchemaMatch::differs) require_recognised(nearer);
  auto verification = compare_with(look, version, functions);
  compare_checksums(connection, verification);
  return verification;
}

void require_recognised(const Verification& verification) {
  switch (verification.match) {
    case SchemaMatch::fits:
      return;
    case SchemaMatch::differs:
      refuse_difference(verification);
    case SchemaMatch::earlier_form:
      throw Error(ExitCode::schema,
                  "the tables are of an earlier form of the schema: tokens.secret is hexadecimal text, and "
                  "mailroom needs bytea",
                  "nothing has been changed; mailroom migrate verify shows what differs and the statements "
                  "that convert it");
    case SchemaMatch::not_ours:
      throw Error(ExitCode::schema,
                  fmt::format("the schema {} has tables with mailroom's names that mailroom did not create",
                              verification.schema),
                  advice_of_own_schema());
  }
}

SchemaState recognised(db::Connection& connection, SchemaState state) {
  require_own_tables(connection, state);
  if (!state.unrecorded) return state;
  const auto nearer = recognise(inspect_schema(connection), state.functions);
  require_recognised(nearer);
  state.version = nearer.version;
  return state;
}

std::string earlier_form_conversion(const Verification& verification) {
  return db::in_schema(
      "BEGIN;\n"
      "ALTER TABLE @.tokens ALTER COLUMN secret DROP DEFAULT,\n"
      "    ALTER COLUMN secret TYPE bytea USING decode(secret, 'hex'),\n"
      "    ALTER COLUMN secret SET DEFAULT " +
          verification.crypto_schema +
          ".gen_random_bytes(32);\n"
          "ALTER TYPE @.job_type RENAME VALUE 'user_action_queue' TO 'mailroom';\n"
          "CREATE OR REPLACE FUNCTION @.trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql\n"
          "    AS 'BEGIN NOTIFY token_insert; RETURN NULL; END;';\n"
          "COMMIT;\n",
      verification.quoted_schema);
}

}  // namespace mailroom::schema
