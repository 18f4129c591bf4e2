// How many mails a role may ask for: the same, whichever way it asks, also by many sessions at once.

#include <atomic>
#include <fmt/format.h>
#include <future>

#include "support/catch.hpp"
#include "support/server_counts.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::role_limit_test {
namespace {

constexpr const char* one_mail = "SELECT mailroom_send('{a@x.example}', subject => 's', text => 't')";

/// A login that may ask for mails in every way.
struct Limited {
  explicit Limited(const std::string& rate_mails = "3", const std::string& period = "1 hour") {
    grant(role);
    limit(role.name(), rate_mails, period);
  }

  void grant(const TestRole& to) {
    rig.connection->run(fmt::format(
        "GRANT EXECUTE ON FUNCTION mailroom_send, mailroom_submit TO {0}; "
        "GRANT INSERT (recipients, subject, text, idempotency_key), SELECT (id) ON mailroom_messages TO {0}",
        to.name()));
  }
  void limit(const std::string& name, const std::string& mails, const std::string& period = "1 hour") {
    rig.connection->run(fmt::format("SELECT mailroom_limit('{}', {}, '{}')", name, mails, period));
  }
  /// Lets time pass.
  void pass(const std::string& time) {
    rig.connection->run(
        fmt::format("SELECT setval('mailroom_limit_1', last_value - (extract(epoch FROM interval '{}') * "
                    "1000000)::bigint) FROM mailroom_limit_1",
                    time));
  }
  std::string stored() {
    return value<std::string>(*rig.connection, "SELECT count(*) FROM mailroom_messages");
  }

  DatabaseRig rig;
  TestRole role{rig.database, "shop"};
};

/// The SQLSTATE, empty for none.
std::string sqlstate(db::Connection& session, const std::string& sql) {
  return refusal(session, sql).substr(0, 5);
}

std::string inserted(int rows) {
  return fmt::format(
      "INSERT INTO mailroom_messages (recipients, subject, text) SELECT '{{a@x.example}}', 's', 't' FROM generate_series(1, {})",
      rows);
}

}  // namespace

TEST_CASE("a role asks for as many mails as it may, whichever way") {
  Limited limited("10");
  db::Connection session(limited.role.conninfo(), "test");
  CHECK(sqlstate(session, one_mail).empty());
  CHECK(
      sqlstate(
          session,
          "SELECT mailroom_submit(ARRAY['', ''], ARRAY['a@x.example', E'b@x.example\\nc@x.example'], "
          "ARRAY[E'From: a@x.example\\r\\n\\r\\n'::bytea, E'From: a@x.example\\r\\n\\r\\n'], ARRAY['1', '2'])")
          .empty());
  CHECK(sqlstate(session, inserted(5)).empty());
  CHECK(sqlstate(session, one_mail).empty());
  CHECK(limited.stored() == "9");
  const auto refused = refusal(session, one_mail);
  CHECK(refused == "MR010 the role \"" + limited.role.name() +
                       "\" has asked for as many mails as it may: 10 in 01:00:00");
  for (const auto& each :
       {inserted(1), std::string("SELECT mailroom_submit(ARRAY[''], ARRAY['a@x.example'], ARRAY[E'From: "
                                 "a@x.example\\r\\n\\r\\n'::bytea])")})
    CHECK(sqlstate(session, each) == "MR010");
  CHECK(limited.stored() == "9");
  // They come back one after the other.
  limited.pass("12 minutes");
  CHECK(sqlstate(session, inserted(3)) == "MR010");
  CHECK(sqlstate(session, inserted(2)).empty());
  CHECK(sqlstate(session, one_mail) == "MR010");
  // What can never be stored is to be changed.
  CHECK(refusal(session, inserted(11)).starts_with("23514 11 mails are more than the role"));
  limited.pass("10 days");
  CHECK(sqlstate(session, inserted(10)).empty());
  CHECK(sqlstate(session, one_mail) == "MR010");
}

TEST_CASE("a mail that is known already, or refused, takes nothing of the limit") {
  Limited limited("2");
  db::Connection session(limited.role.conninfo(), "test");
  const std::string keyed =
      "SELECT mailroom_send('{a@x.example}', subject => 's', text => 't', idempotency_key => 'k')";
  for (int i = 0; i < 5; ++i)
    CHECK(sqlstate(session, keyed).empty());
  CHECK(sqlstate(session, "SELECT mailroom_send('{nobody}', subject => 's', text => 't')") == "23514");
  CHECK(sqlstate(session, one_mail).empty());
  CHECK(sqlstate(session, keyed).empty());
  CHECK(sqlstate(session, one_mail) == "MR010");
}

TEST_CASE(
    "the limit of a group holds for its members together, and another role to act as is no way around") {
  Limited limited("2");
  const TestRole group(limited.rig.database, "group");
  const TestRole other(limited.rig.database, "other");
  auto& owner = *limited.rig.connection;
  owner.run("ALTER ROLE " + group.name() + " NOLOGIN");
  limited.grant(group);
  owner.run(fmt::format(
      "REVOKE ALL ON FUNCTION mailroom_send, mailroom_submit FROM {0}; REVOKE ALL ON mailroom_messages FROM {0}; "
      "GRANT {1} TO {0}, {2}",
      limited.role.name(), group.name(), other.name()));
  db::Connection first(limited.role.conninfo(), "test");
  db::Connection second(other.conninfo(), "test");
  first.run("SET ROLE " + group.name());
  CHECK(sqlstate(first, inserted(2)).empty());
  CHECK(sqlstate(first, one_mail) == "MR010");
  limited.limit(group.name(), "3");
  CHECK(sqlstate(second, inserted(2)).empty());
  CHECK(sqlstate(second, inserted(2)) == "MR010");
  limited.limit(limited.role.name(), "NULL");
  CHECK(sqlstate(first, one_mail).empty());
  CHECK(sqlstate(first, one_mail) == "MR010");
  limited.limit(group.name(), "NULL");
  CHECK(sqlstate(first, inserted(100)).empty());
  CHECK(value<std::string>(
            owner,
            "SELECT string_agg(kind || ' ' || coalesce(details->>'mails', 'none'), ', ' ORDER BY id) "
            "FROM mailroom_operations") == "set limit 2, set limit 3, set limit none, set limit none");
  CHECK(refusal(owner, "SELECT mailroom_limit('nobody at all', 1, '1 hour')").starts_with("42704 "));
}

TEST_CASE("sessions of a role get no more than its limit together, and wait for none of them") {
  // So long a period that none comes back meanwhile.
  constexpr int mails = 400;
  Limited limited(std::to_string(mails), "300 days");
  // It has taken one, and goes on for as long as the test.
  db::Connection open(limited.role.conninfo(), "test");
  open.run("BEGIN");
  open.run(one_mail);
  std::atomic<int> committed{0};
  std::atomic<int> rolled_back{0};
  std::atomic<int> wrong{0};
  std::vector<std::future<void>> clients;
  for (int client = 0; client < 8; ++client) {
    clients.push_back(std::async(std::launch::async, [&, client] {
      db::Connection session(limited.role.conninfo(), "test");
      session.run("SET lock_timeout = '5s'");
      for (int i = 0; i < 100; ++i) {
        session.run(client % 2 == 0 ? "BEGIN" : "BEGIN ISOLATION LEVEL SERIALIZABLE");
        const auto error = sqlstate(session, one_mail);
        const bool is_kept = i % 4 > 0 && error.empty();
        if (sqlstate(session, is_kept ? "COMMIT" : "ROLLBACK").empty() && error.empty())
          ++(is_kept ? committed : rolled_back);
        if (!error.empty() && error != "MR010") ++wrong;
      }
    }));
  }
  for (auto& client : clients)
    client.get();
  CHECK(wrong == 0);
  CHECK(committed + rolled_back == mails - 1);
  CHECK(limited.stored() == std::to_string(committed));
  open.run("COMMIT");
  CHECK(limited.stored() == std::to_string(committed + 1));
}

TEST_CASE("a mail of a role without a limit costs no statement more where others have one") {
  const auto plans = [](bool has_limit) {
    Limited limited;
    if (!has_limit) limited.limit(limited.role.name(), "NULL");
    log_everything(limited.rig.database);
    const auto connection = limited.rig.database.connect();
    for (int i = 0; i < 7; ++i)
      connection->run(one_mail);
    return plans_in(*connection, [&] { connection->run(one_mail); }).size();
  };
  CHECK(plans(true) == 4);
  CHECK(plans(false) == 4);
}

}  // namespace mailroom::test::role_limit_test
