// The list of rights: what GRANT says of it, what each role holds, and what somebody has beyond it.

#include <algorithm>

#include "schema/schema_objects.hpp"
#include "schema/undue_rights.hpp"
#include "support/catch.hpp"

namespace mailroom::test::role_list_test {
namespace {

using schema::ObjectKind;
using schema::Privilege;
using schema::Privileges;

Privilege on_table(const std::string& object, const std::string& name, const std::string& column = {}) {
  return {ObjectKind::table, object, column, name};
}

Privileges both(Privileges a, const Privileges& b) {
  a.insert(b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("the statements of a role are those that somebody would type") {
  const auto statements = schema::grant_statements("\"Mail\"", "shop");
  const auto has = [&](const std::string& statement) {
    return std::ranges::find(statements, statement) != statements.end();
  };
  CHECK(has("GRANT USAGE ON SCHEMA \"Mail\" TO shop_producer;"));
  CHECK(has("GRANT INSERT (email, login), SELECT (id) ON \"Mail\".accounts TO shop_app;"));
  CHECK(has("GRANT USAGE ON SEQUENCE \"Mail\".accounts_id_seq TO shop_app;"));
  CHECK(
      has("GRANT EXECUTE ON FUNCTION \"Mail\".mailroom_record_bounces, \"Mail\".mailroom_report, "
          "\"Mail\".mailroom_preferences, \"Mail\".mailroom_prefer TO shop_bouncer;"));
}

TEST_CASE("a list of privileges is split at commas outside of parentheses") {
  CHECK(schema::given_to("redeemer") == Privileges{on_table("tokens", "SELECT"),
                                                   on_table("tokens", "INSERT", "account"),
                                                   on_table("tokens", "INSERT", "action"),
                                                   on_table("tokens", "UPDATE", "consumed_at"),
                                                   {ObjectKind::sequence, "tokens_id_seq", "", "USAGE"},
                                                   on_table("accounts", "SELECT"),
                                                   on_table("accounts", "UPDATE", "status")});
}

TEST_CASE("each table, column and function of the list exists") {
  const auto& objects = schema::expected_objects();
  for (const auto& role : schema::roles()) {
    for (const auto& privilege : schema::allowed_to(role.name)) {
      CAPTURE(role.name, privilege.object, privilege.column);
      if (privilege.kind == ObjectKind::sequence || privilege.object == "schema_migrations" ||
          privilege.object == "mailroom_schema_history" || privilege.column == "xmin")
        continue;
      CHECK(objects.count({privilege.kind, privilege.object}) == 1);
      if (!privilege.column.empty())
        CHECK(objects.count({ObjectKind::column, privilege.object + "." + privilege.column}) == 1);
    }
  }
}

TEST_CASE("an operator may have what a collector and a reader may") {
  const auto& allowed = schema::allowed_to("operator");
  for (const auto* group : {"collector", "reader"})
    CHECK(std::ranges::includes(allowed, schema::allowed_to(group)));
}

TEST_CASE("a role that ends as one of the list loses what is more; any other with more loses all") {
  const auto reader = schema::given_to("reader");
  const Privileges more{on_table("jobs", "UPDATE"), on_table("tokens", "SELECT")};
  CHECK(schema::undue_rights("shop_reader", reader).empty());
  CHECK(schema::undue_rights("shop_reader", both(reader, more)) == more);
  // The name alone says nothing.
  const auto shop = both(schema::given_to("producer"), schema::given_to("redeemer"));
  CHECK(schema::undue_rights("shop_app", shop).empty());
  CHECK(schema::undue_rights("shop_app", both(shop, {on_table("jobs", "SELECT")})) ==
        Privileges{on_table("jobs", "SELECT")});
  CHECK(schema::undue_rights("shop", both(schema::given_to("producer"), more)) == more);
  CHECK(schema::undue_rights("shop", both(shop, {on_table("jobs", "UPDATE")})) ==
        Privileges{on_table("jobs", "UPDATE")});
  CHECK(schema::undue_rights("dashboard", reader).empty());
  CHECK(schema::undue_rights("dashboard", both(reader, more)) == both(reader, more));
  CHECK(schema::undue_rights("", schema::given_to("producer")) == schema::given_to("producer"));
  CHECK(schema::undue_rights("", schema::allowed_to_everyone()).empty());
}

TEST_CASE("a few rights of a role make nobody one, but those of a producer") {
  CHECK(schema::undue_rights("web", {on_table("mailroom_messages", "SELECT")}).size() == 1);
  CHECK(schema::undue_rights("web", {on_table("mailroom_messages", "SELECT", "text")}).size() == 1);
  CHECK(schema::undue_rights("web", {{ObjectKind::function, "mailroom_release", "", "EXECUTE"}}).size() == 1);
  CHECK(schema::undue_rights("web", {{ObjectKind::function, "mailroom_send", "", "EXECUTE"}}).empty());
  CHECK(schema::undue_rights("web", {on_table("tokens", "SELECT")}, schema::allowed_to("collector")).empty());
  CHECK(schema::undue_rights("web", {{ObjectKind::function, "mailroom_submit", "", "EXECUTE"},
                                     {ObjectKind::function, "mailroom_send", "", "EXECUTE"}})
            .empty());
  // Most of what a collector needs: one was forgotten.
  auto collector = schema::given_to("collector");
  collector.erase(on_table("mailroom_batches", "INSERT"));
  CHECK(schema::undue_rights("web", collector).empty());
  // Every right of every role is no role.
  Privileges all;
  for (const auto& role : schema::roles())
    all = both(all, schema::allowed_to(role.name));
  all.insert(on_table("tokens", "TRUNCATE"));
  CHECK(schema::undue_rights("web", all).size() > 100);
}

TEST_CASE("rights are described and taken together where they are alike") {
  const Privileges held{on_table("jobs", "SELECT"),
                        on_table("tokens", "SELECT"),
                        on_table("mailroom_batches", "SELECT"),
                        on_table("mailroom_gaps", "SELECT"),
                        on_table("mailroom_sinks", "SELECT"),
                        on_table("jobs", "UPDATE"),
                        on_table("mailroom_messages", "SELECT", "id"),
                        on_table("mailroom_messages", "SELECT", "text"),
                        {ObjectKind::sequence, "tokens_id_seq", "", "USAGE"}};
  CHECK(
      schema::described(held) ==
      "SELECT on mailroom_batches, mailroom_gaps, mailroom_sinks, tokens; SELECT (id, text) on mailroom_messages; SELECT, UPDATE on "
      "jobs; USAGE on tokens_id_seq");
  auto undue = held;
  undue.erase(on_table("jobs", "SELECT"));
  undue.erase(on_table("mailroom_messages", "SELECT", "id"));
  CHECK(
      schema::revoke_statements(undue, held, "mailroom", "web") ==
      std::vector<std::string>{
          "REVOKE ALL ON mailroom.mailroom_batches, mailroom.mailroom_gaps, mailroom.mailroom_sinks, mailroom.tokens FROM web "
          "CASCADE;",
          "REVOKE SELECT (text) ON mailroom.mailroom_messages FROM web CASCADE;",
          "REVOKE UPDATE ON mailroom.jobs FROM web CASCADE;",
          "REVOKE ALL ON SEQUENCE mailroom.tokens_id_seq FROM web CASCADE;"});
}

}  // namespace mailroom::test::role_list_test
