// What others may do with mailroom's objects: doctor finds each way by which a right can come, and its REVOKE
// ends it.

#include <fmt/format.h>

#include "schema/configured_schema.hpp"
#include "support/doctor_rig.hpp"
#include "support/documented_roles.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::rights_test {
namespace {

using doctor::CheckVerdict;

/// True if the role, which owns nothing and is no superuser, may do anything with a table, column, sequence
/// or function with its owner's rights.
bool may_anything(db::Connection& connection, const std::string& role) {
  return connection
      .run(R"(
SELECT (SELECT coalesce(bool_or(has_table_privilege($1::regrole::oid, c.oid, p)
                                OR CASE WHEN p IN ('SELECT', 'INSERT', 'UPDATE') THEN has_any_column_privilege($1::regrole::oid, c.oid, p) END), false)
        FROM pg_class c, unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) p
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r' AND c.relname NOT IN ('mailroom_home', 'mailroom_owners'))
    OR (SELECT bool_or(has_sequence_privilege($1::regrole::oid, c.oid, 'USAGE, SELECT, UPDATE')) FROM pg_class c
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'S')
    OR (SELECT bool_or(has_function_privilege($1::regrole::oid, p.oid, 'EXECUTE')) FROM pg_proc p
        WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND p.prosecdef))",
           role)
      .value<bool>();
}

/// Whether it is a failure or a warning, after what was done to a sound schema.
struct Way {
  const char* sql;  ///< {} is the role
  CheckVerdict verdict = CheckVerdict::failure;
};

/// The finding is gone after its own statements, and so is the right.
void check_ways(const std::vector<Way>& ways) {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole web(database, "web");
  const DoctorRig rig(database);
  for (const auto& way : ways) {
    check_fixing(*connection, rig, "privileges", way.verdict, fmt::format(fmt::runtime(way.sql), web.name()));
    INFO(way.sql);
    CHECK_FALSE(may_anything(*connection, web.name()));
  }
}

}  // namespace

TEST_CASE(
    "doctor finds a right on any object, however it was granted, and prints the statement that takes it away") {
  check_ways(
      {{"GRANT SELECT ON mailroom_messages TO {}"},
       {"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}"},
       {"GRANT ALL ON ALL TABLES IN SCHEMA public TO {0}; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {0}; "
        "GRANT ALL ON ALL FUNCTIONS IN SCHEMA public TO {0}"},
       {"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {}"},
       {"GRANT SELECT (text, html) ON mailroom_messages TO {}"},
       {"GRANT UPDATE (state) ON mailroom_deliveries TO {}"},
       {"GRANT USAGE ON SEQUENCE mailroom_messages_id_seq TO {}"},
       {"GRANT EXECUTE ON FUNCTION mailroom_record_bounces TO {}"},
       {"GRANT TRUNCATE ON mailroom_suppressions TO {}"},
       {"GRANT SELECT ON mailroom_outcomes TO PUBLIC"},
       {"GRANT EXECUTE ON FUNCTION mailroom_send TO PUBLIC"},
       {"GRANT INSERT ON mailroom_messages TO PUBLIC"}});
}

TEST_CASE("what an application may have got on the original's tables is a warning") {
  check_ways({{"GRANT SELECT ON tokens TO {}", CheckVerdict::warning},
              {"GRANT ALL ON jobs, tokens_id_seq TO {}", CheckVerdict::warning},
              {"GRANT SELECT ON accounts TO PUBLIC", CheckVerdict::warning},
              {"GRANT CREATE ON SCHEMA public TO {}", CheckVerdict::warning}});
}

TEST_CASE("what roles of the list are given is right for any role, and more is not") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole shop(database, "shop");
  const DoctorRig rig(database);
  for (const auto* granted :
       {"EXECUTE ON FUNCTION mailroom_send", "EXECUTE ON FUNCTION mailroom_cancel, mailroom_message_status",
        "INSERT (recipients, template, data), SELECT (id) ON mailroom_messages",
        "SELECT (owner, idempotency_key, replaced_at) ON mailroom_messages",
        "INSERT (email, login), SELECT (id) ON accounts", "USAGE ON SEQUENCE accounts_id_seq",
        "UPDATE, DELETE ON accounts", "EXECUTE ON FUNCTION mailroom_bounced_addresses",
        "SELECT (secret, action, message, consumed_at, expires_at), UPDATE (consumed_at) ON tokens",
        "SELECT (id, reference) ON mailroom_messages"}) {
    INFO(granted);
    connection->run(fmt::format("GRANT {} TO {}", granted, shop.name()));
    CHECK(all_fine(rig.examine("privileges")));
  }
  connection->run(fmt::format("GRANT SELECT ON mailroom_batches TO {}", shop.name()));
  CHECK_FALSE(all_fine(rig.examine("privileges")));
}

TEST_CASE("the documented roles are right, and lose only what they have beyond it") {
  const TestDatabase database;
  const DocumentedRoles roles(database);
  auto& connection = roles.owner();
  const DoctorRig rig(database);
  CHECK(all_fine(rig.examine("privileges")));
  connection.run(
      fmt::format("GRANT UPDATE ON jobs TO {0}; GRANT INSERT ON tokens TO {0}", roles.name("reader")));
  REQUIRE(run_fixes(connection, rig.examine("privileges")));
  CHECK(all_fine(rig.examine("privileges")));
  CHECK(value<bool>(connection, fmt::format("SELECT has_table_privilege('{0}', 'jobs', 'SELECT') AND NOT "
                                            "has_table_privilege('{0}', 'jobs', 'UPDATE') AND NOT "
                                            "has_table_privilege('{0}', 'tokens', 'INSERT')",
                                            roles.name("reader"))));
}

TEST_CASE("what a role passes on ends with its own right, and what a sound role has passed on is found") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole web(database, "web");
  const TestRole other(database, "other");
  const DoctorRig rig(database);
  connection->run(fmt::format(
      "GRANT SELECT ON mailroom_messages TO {0} WITH GRANT OPTION; SET ROLE {0}; GRANT SELECT ON mailroom_messages TO {1}; RESET ROLE",
      web.name(), other.name()));
  REQUIRE(run_fixes(*connection, rig.examine("privileges")));
  CHECK(all_fine(rig.examine("privileges")));
  CHECK_FALSE(may_anything(*connection, other.name()));
  connection->run(fmt::format(
      "GRANT EXECUTE ON FUNCTION mailroom_send TO {0} WITH GRANT OPTION; SET ROLE {0}; GRANT EXECUTE ON FUNCTION mailroom_send TO "
      "PUBLIC; RESET ROLE",
      web.name()));
  REQUIRE(run_fixes(*connection, rig.examine("privileges")));
  CHECK(all_fine(rig.examine("privileges")));
  CHECK_FALSE(may_anything(*connection, other.name()));
}

TEST_CASE("where every object is given to web roles by default, as at Supabase, mailroom's are not") {
  for (const std::string schema : {"public", "mailroom"}) {
    CAPTURE(schema);
    const TestDatabase database(TestDatabase::Schema::none);
    const auto superuser = database.connect();
    const TestRole host(database, "host");
    const TestRole anon(database, "anon");
    superuser->run(fmt::format(
        "ALTER DATABASE {0} OWNER TO {1}; GRANT pg_monitor TO {1}; GRANT USAGE ON SCHEMA public TO {2}",
        database.name(), host.name(), anon.name()));
    db::Connection own(host.conninfo(), "test");
    for (const auto* objects : {"TABLES", "SEQUENCES", "FUNCTIONS", "SCHEMAS"})
      own.run(fmt::format("ALTER DEFAULT PRIVILEGES GRANT ALL ON {} TO {}", objects, anon.name()));
    for (const auto* objects : {"TABLES", "SEQUENCES", "FUNCTIONS"})
      own.run(fmt::format("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON {} TO {}, PUBLIC", objects,
                          anon.name()));
    DoctorRig rig(database);
    rig.environment["MAILROOM_DATABASE_URL"] = host.conninfo();
    rig.environment["MAILROOM_DATABASE_SCHEMA"] = schema;
    db::Connection owner({host.conninfo(), schema}, "test");
    schema::create_configured_schema(owner);
    migrate(owner);
    CHECK_FALSE(may_anything(owner, anon.name()));
    const bool may_create = value<bool>(
        owner, fmt::format("SELECT has_schema_privilege('{}', '{}', 'CREATE')", anon.name(), schema));
    CHECK_FALSE(may_create);
    const auto findings = rig.examine("privileges");
    INFO(summary(findings));
    CHECK_FALSE(doctor::any_failure(findings));
    CHECK(summary(findings).find(anon.name()) == std::string::npos);
    // What somebody types after an error of the API.
    owner.run(fmt::format(
        "GRANT ALL ON ALL TABLES IN SCHEMA {0} TO {1}; GRANT ALL ON ALL SEQUENCES IN SCHEMA {0} TO {1}; GRANT ALL ON "
        "ALL FUNCTIONS IN SCHEMA {0} TO {1}",
        schema, anon.name()));
    const auto given = rig.examine("privileges");
    CHECK(doctor::any_failure(given));
    REQUIRE(run_fixes(*superuser, given));
    CHECK(summary(rig.examine("privileges")) == summary(findings));
    CHECK_FALSE(may_anything(owner, anon.name()));
  }
}

}  // namespace mailroom::test::rights_test
