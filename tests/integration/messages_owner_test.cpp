// Whom a message belongs to: every login of the group that has the right, also when roles are renamed or made
// again.

#include <fmt/format.h>

#include "messages/message_search.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::messages_owner_test {
namespace {

constexpr const char* functions = "mailroom_send, mailroom_cancel, mailroom_message_status";

/// A group with the right to send, and logins that are its members.
struct Group {
  Group(const DatabaseRig& rig, const std::string& name)
      : owner(*rig.connection),
        group(rig.database, name),
        app(rig.database, name + "_app"),
        clone(rig.database, name + "_clone") {
    owner.run(fmt::format("ALTER ROLE {} NOLOGIN", group.name()));
    grant();
  }

  void grant() {
    owner.run(fmt::format("GRANT EXECUTE ON FUNCTION {} TO {}", functions, group.name()));
    owner.run(fmt::format(
        "GRANT INSERT (recipients, subject, text, idempotency_key), SELECT (id) ON mailroom_messages TO {}",
        group.name()));
    owner.run(fmt::format("GRANT {} TO {}, {}", group.name(), app.name(), clone.name()));
  }

  db::Connection& owner;
  TestRole group;
  TestRole app;
  TestRole clone;
};

std::string send(const std::string& key, const std::string& subject = "s", const std::string& more = {}) {
  return fmt::format(
      "SELECT mailroom_send(ARRAY['a@x.example'], subject => '{}', text => 't', idempotency_key => '{}'{})",
      subject, key, more);
}

constexpr const char* replacing = ", options => '{\"replace\": true}'";

std::string insert(const std::string& key) {
  return fmt::format(
      "INSERT INTO mailroom_messages (recipients, subject, text, idempotency_key) VALUES ('{{a@x.example}}', 's', 't', '{}') "
      "RETURNING id",
      key);
}

/// What a new session of `role` gets for a statement: its value, `-` for none or null, or the SQLSTATE of its
/// error.
std::string ask(const TestRole& role, const std::string& sql) {
  db::Connection session(role.conninfo(), "test");
  try {
    const auto rows = session.run(sql);
    return rows.empty() || rows[0][0].is_null() ? "-" : rows[0][0].c_str();
  } catch (const db::DatabaseError& error) {
    return error.sqlstate();
  }
}

std::string cancel(const TestRole& role, const std::string& id) {
  return ask(role, fmt::format("SELECT mailroom_cancel({})", id));
}

std::string state(const TestRole& role, const std::string& id) {
  return ask(role, fmt::format("SELECT state FROM mailroom_message_status({})", id));
}

/// The role of app may do all that a message of its group allows, and its key is known.
void check_own(const TestRole& app, const std::string& id, const std::string& key) {
  CHECK(state(app, id) == "waiting");
  CHECK(ask(app, send(key)) == id);
  CHECK(ask(app, insert(key)) == "23505");
  const auto newer = ask(app, send(key, "moved", replacing));
  CHECK(state(app, id) == "replaced");
  CHECK(ask(app, fmt::format("SELECT mailroom_cancel(idempotency_key => '{}')", key)) == "cancelled");
  CHECK(state(app, newer) == "cancelled");
}

}  // namespace

TEST_CASE("what a login has asked for belongs to each login of its group") {
  const DatabaseRig rig;
  const Group shop(rig, "shop");
  check_own(shop.clone, ask(shop.app, send("k")), "k");
  check_own(shop.app, ask(shop.clone, insert("i")), "i");
  const auto id = ask(shop.app, send("gone"));
  rig.connection->run(fmt::format("REVOKE {} FROM {}", shop.group.name(), shop.app.name()));
  check_own(shop.clone, id, "gone");
}

TEST_CASE("no role meets the key of another, and the message of another is an error that names its role") {
  const DatabaseRig rig;
  const Group shop(rig, "shop");
  const Group bill(rig, "bill");
  const auto id = ask(shop.app, send("k"));
  const auto other = ask(bill.app, send("k"));
  CHECK(other != id);
  CHECK(ask(bill.app, send("k", "other content")) == "23505");
  CHECK(ask(bill.app, insert("k")) == "23505");
  CHECK(ask(bill.app, fmt::format("SELECT mailroom_cancel(idempotency_key => 'k')")) == "cancelled");
  CHECK(state(shop.clone, id) == "waiting");
  CHECK(cancel(bill.app, id) == "42501");
  CHECK(state(bill.app, id) == "42501");
  CHECK(cancel(bill.app, "4711") == "-");
  CHECK(state(bill.app, "4711") == "-");
  db::Connection session(bill.app.conninfo(), "test");
  CHECK(refusal(session, fmt::format("SELECT mailroom_cancel({})", id))
            .starts_with(fmt::format("42501 message {} belongs to the role \"{}\"", id, shop.group.name())));
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_operations") == 0);
}

TEST_CASE("an operator sees whose a message is, and finds those of a role") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  Group shop(rig, "shop");
  const Group bill(rig, "bill");
  const auto of_shop = std::stoll(ask(shop.app, send("k")));
  const auto of_bill = std::stoll(ask(bill.app, insert("k")));
  const auto found = [&](const std::vector<std::string>& owners) {
    std::string all;
    for (const auto& message : messages::list_messages(connection, {.owners = owners}, 10))
      all += fmt::format("{} {} ", message.id, message.owner);
    return all;
  };
  const auto shop_name = shop.group.name();
  CHECK(found({shop_name}) == fmt::format("{} {} ", of_shop, shop_name));
  CHECK(found({shop_name, bill.group.name()}) ==
        fmt::format("{} {} {} {} ", of_bill, bill.group.name(), of_shop, shop_name));
  CHECK(found({shop.app.name()}).empty());
  const auto summary = messages::read_message(connection, of_shop).summary;
  CHECK(summary.enqueued_by == shop.app.name());
  CHECK(summary.owner == shop_name);
  // One that is gone, and one whose number is not entered yet.
  connection.run(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", shop_name));
  CHECK(found({shop_name}) == fmt::format("{} {} ", of_shop, shop_name));
  connection.run(fmt::format("CREATE ROLE {}", shop_name));
  connection.run("DELETE FROM mailroom_owners WHERE name = '" + bill.group.name() + "'");
  CHECK(found({bill.group.name()}) == fmt::format("{} {} ", of_bill, bill.group.name()));
}

TEST_CASE("a member of two applications that are members of the producers belongs to the nearer one") {
  const DatabaseRig rig;
  const TestRole producers(rig.database, "producers");
  const Group shop(rig, "shop");
  const Group bill(rig, "bill");
  rig.connection->run(fmt::format("ALTER ROLE {} NOLOGIN", producers.name()));
  for (const auto* group : {&shop, &bill}) {
    rig.connection->run(fmt::format("DROP OWNED BY {}", group->group.name()));
    rig.connection->run(fmt::format("GRANT {} TO {}", producers.name(), group->group.name()));
  }
  rig.connection->run(fmt::format("GRANT EXECUTE ON FUNCTION {} TO {}", functions, producers.name()));
  const auto id = ask(shop.app, send("k"));
  CHECK(ask(bill.app, send("k")) != id);
  CHECK(state(shop.clone, id) == "waiting");
  CHECK(state(bill.clone, id) == "42501");
  // A login below a login belongs to the group of that one.
  rig.connection->run(fmt::format("REVOKE {} FROM {}", shop.group.name(), shop.clone.name()));
  rig.connection->run(fmt::format("GRANT {} TO {}", shop.app.name(), shop.clone.name()));
  CHECK(ask(shop.clone, send("k")) == id);
}

TEST_CASE("a role that is renamed, or dropped and made again, keeps its messages and keys") {
  const DatabaseRig rig;
  Group shop(rig, "shop");
  auto& connection = *rig.connection;
  const auto name = shop.group.name();
  const auto first = ask(shop.app, send("a"));
  connection.run(fmt::format("ALTER ROLE {0} RENAME TO {0}_renamed", name));
  check_own(shop.clone, first, "a");
  const auto second = ask(shop.clone, insert("b"));
  connection.run(fmt::format("ALTER ROLE {0}_renamed RENAME TO {0}", name));
  check_own(shop.app, second, "b");
  const auto third = ask(shop.app, send("c"));
  connection.run(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}; CREATE ROLE {0}", name));
  shop.grant();
  check_own(shop.clone, third, "c");
  const auto fourth = ask(shop.app, insert("d"));
  connection.run(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}; CREATE ROLE {0}", name));
  shop.grant();
  CHECK(ask(shop.app, insert("d")) == "23505");
  check_own(shop.app, fourth, "d");
  // Another role under the name of before is another one.
  const auto fifth = ask(shop.app, send("e"));
  connection.run(fmt::format("ALTER ROLE {0} RENAME TO {0}_old; CREATE ROLE {0}", name));
  connection.run(fmt::format("REVOKE {0}_old FROM {1}", name, shop.clone.name()));
  shop.grant();
  connection.run(fmt::format("REVOKE {0} FROM {1}", name, shop.app.name()));
  CHECK(ask(shop.app, send("e")) == fifth);
  CHECK(ask(shop.clone, send("e")) != fifth);
  CHECK(state(shop.clone, fifth) == "42501");
  connection.run(fmt::format("DROP OWNED BY {0}_old; DROP ROLE {0}_old", name));
}

TEST_CASE("another owner of tables and functions changes no owner of messages") {
  const DatabaseRig rig;
  const Group shop(rig, "shop");
  const TestRole dbo(rig.database, "dbo");
  auto& connection = *rig.connection;
  const auto id = ask(shop.app, send("k"));
  connection.run(fmt::format(R"(DO $$ DECLARE r record; BEGIN
FOR r IN SELECT format('ALTER TABLE %s OWNER TO {0}', oid::regclass) AS sql FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
  UNION ALL SELECT format('ALTER FUNCTION %s OWNER TO {0}', p.oid::regprocedure) FROM pg_proc p WHERE pronamespace = 'public'::regnamespace
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') LOOP EXECUTE r.sql; END LOOP; END $$)",
                             dbo.name()));
  connection.run(fmt::format("GRANT USAGE, CREATE ON SCHEMA public TO {}", dbo.name()));
  check_own(shop.clone, id, "k");
  const auto of_owner = ask(dbo, send("k"));
  CHECK(of_owner != id);
  // A superuser acts for the owner of the tables.
  CHECK(std::string(connection.run(send("k"))[0][0].c_str()) == of_owner);
}

TEST_CASE("a superuser who owned the tables keeps his messages and keys when another owns them") {
  const DatabaseRig rig;
  const TestRole dbo(rig.database, "dbo");
  auto& connection = *rig.connection;
  const auto id = std::string(connection.run(send("k"))[0][0].c_str());
  connection.run(fmt::format("ALTER TABLE mailroom_messages OWNER TO {}", dbo.name()));
  const auto session = rig.database.connect();
  CHECK(std::string(session->run(send("k"))[0][0].c_str()) == id);
  CHECK(value<std::string>(*session, "SELECT mailroom_cancel(idempotency_key => 'k')") == "cancelled");
}

TEST_CASE("the message of a role that is gone belongs to who is given its name") {
  const DatabaseRig rig;
  const Group bill(rig, "bill");
  auto& connection = *rig.connection;
  const auto gone = rig.database.name() + "_gone";
  connection.run(
      fmt::format("CREATE ROLE {0}; GRANT EXECUTE ON FUNCTION {1} TO {0}; SET ROLE {0}", gone, functions));
  const auto id = std::string(connection.run(send("k"))[0][0].c_str());
  connection.run(fmt::format("RESET ROLE; DROP OWNED BY {0}; DROP ROLE {0}", gone));
  db::Connection session(bill.app.conninfo(), "test");
  try {
    session.run(fmt::format("SELECT mailroom_cancel({})", id));
    FAIL("another role cancels it");
  } catch (const db::DatabaseError& error) {
    const std::string remedy = error.hint();
    REQUIRE(remedy.starts_with("that role is gone: CREATE ROLE "));
    connection.run(remedy.substr(remedy.find("CREATE")));
  }
  CHECK(value<std::string>(session, fmt::format("SELECT mailroom_cancel({})", id)) == "cancelled");
  connection.run(fmt::format("DROP ROLE {}", gone));
}

TEST_CASE("SET ROLE decides, and a role with a right of its own is its own owner") {
  const DatabaseRig rig;
  const Group shop(rig, "shop");
  const TestRole other(rig.database, "other");
  auto& connection = *rig.connection;
  const auto id = ask(shop.app, send("k"));
  db::Connection session(shop.app.conninfo(), "test");
  CHECK(std::string(session.run(send("k"))[0][0].c_str()) == id);
  session.run("SET ROLE " + shop.group.name());
  CHECK(std::string(session.run(send("k"))[0][0].c_str()) == id);
  connection.run(fmt::format("GRANT EXECUTE ON FUNCTION {} TO {}", functions, other.name()));
  connection.run(fmt::format("GRANT {} TO {}", other.name(), shop.app.name()));
  session.run("SET ROLE " + other.name());
  CHECK(std::string(session.run(send("k"))[0][0].c_str()) != id);
  session.run("RESET ROLE");
  CHECK(std::string(session.run(send("k"))[0][0].c_str()) == id);
  // One that has the right as everyone has it is alone.
  connection.run(fmt::format("REVOKE {} FROM {}", shop.group.name(), shop.clone.name()));
  connection.run(fmt::format("GRANT EXECUTE ON FUNCTION {} TO PUBLIC", functions));
  CHECK(ask(shop.clone, send("k")) != id);
  CHECK(state(shop.clone, id) == "42501");
}

TEST_CASE("an owner cannot be chosen") {
  const DatabaseRig rig;
  const Group shop(rig, "shop");
  const Group bill(rig, "bill");
  const TestRole web(rig.database, "web");
  auto& connection = *rig.connection;
  connection.run(fmt::format("GRANT INSERT ON mailroom_messages TO {}", web.name()));
  const auto id = ask(shop.app, send("k"));
  ask(bill.app, send("k"));
  const auto owner = value<std::string>(connection, "SELECT owner FROM mailroom_messages WHERE id = " + id);
  const auto chosen = fmt::format(
      "INSERT INTO mailroom_messages (recipients, subject, text, owner) VALUES ('{{a@x.example}}', 's', 't', {})",
      owner);
  CHECK(ask(web, chosen) == "42501");
  CHECK(ask(shop.app, chosen) == "42501");
  const auto role = value<std::string>(connection, "SELECT role FROM mailroom_owners WHERE owner = " + owner);
  // Nor by the settings in which a session remembers it.
  const auto plain = std::string(
      "INSERT INTO mailroom_messages (recipients, subject, text) VALUES ('{a@x.example}', 's', 't')");
  for (const auto& claimed : {role, std::string("10"), std::string("0"), std::string()}) {
    db::Connection session(web.conninfo(), "test");
    session.run(fmt::format(
        "SELECT set_config('mailroom.caller', '{}', false), set_config('mailroom.role', '{}', false), "
        "set_config('mailroom.owner', '{}', false)",
        web.name(), claimed, owner));
    session.run(plain);
    CHECK(
        value<std::string>(connection,
                           "SELECT name FROM mailroom_owners o JOIN mailroom_messages m ON m.owner = o.owner "
                           "ORDER BY m.id DESC LIMIT 1") == web.name());
    session.run(fmt::format("SELECT set_config('mailroom.owner', '{}', false)", owner));
    CHECK(refusal(session, plain).starts_with("42501 "));
  }
}

TEST_CASE("no setting of a session tells which keys another role has") {
  const DatabaseRig rig;
  const Group shop(rig, "shop");
  const Group bill(rig, "bill");
  auto& connection = *rig.connection;
  const auto theirs = ask(bill.app, send("theirs"));
  const auto owner_of = [&](const std::string& id) {
    return value<std::string>(connection, "SELECT owner FROM mailroom_messages WHERE id = " + id);
  };
  const auto mine = ask(shop.app, send("mine"));
  db::Connection session(shop.app.conninfo(), "test");
  session.run("SET statement_timeout = '10s'");
  session.run(send("mine"));
  session.run(fmt::format("SELECT set_config('mailroom.owner', '{}', false)", owner_of(theirs)));
  for (const std::string key : {"theirs", "nobody's"}) {
    const auto quoted = key == "theirs" ? key : "nobody''s";
    CAPTURE(key);
    CHECK(refusal(session, insert(quoted)).starts_with("42501 "));
    const auto id = std::string(session.run(send(quoted))[0][0].c_str());
    CHECK(id != theirs);
    CHECK(owner_of(id) == owner_of(mine));
  }
}

TEST_CASE("after a restore in another cluster roles are found by their names") {
  const DatabaseRig rig;
  const Group shop(rig, "shop");
  const Group bill(rig, "bill");
  auto& connection = *rig.connection;
  const auto of_shop = ask(shop.app, send("k"));
  const auto of_bill = ask(bill.app, send("k"));
  for (const bool is_adopted : {false, true}) {
    // There each oid is that of the other role.
    connection.run(R"(
UPDATE mailroom_home SET tokens = 1;
CREATE TEMP TABLE before AS SELECT * FROM mailroom_owners;
UPDATE mailroom_owners SET role = NULL;
UPDATE mailroom_owners o SET role = b.role FROM before b WHERE b.owner <> o.owner;
DROP TABLE before)");
    if (is_adopted) connection.run("SELECT mailroom_adopt(NULL)");
    CHECK(ask(bill.clone, send("k")) == of_bill);
    CHECK(ask(shop.clone, send("k")) == of_shop);
    CHECK(state(bill.app, of_shop) == "42501");
  }
}

}  // namespace mailroom::test::messages_owner_test
