// mailroom_submit() and the column raw: what is refused, keys, groups, and the caller's transaction.

#include <future>

#include "integration/raw_rig.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::raw_submit_test {
namespace {

/// The error of a statement, or `ok`.
std::string error_of(db::Connection& connection, const std::string& sql) {
  try {
    connection.run(sql);
  } catch (const db::DatabaseError& error) {
    return error.what();
  }
  return "ok";
}

std::string insert(const std::string& raw, const std::string& columns = {}, const std::string& values = {}) {
  return fmt::format(
      "INSERT INTO mailroom_messages (recipients, raw{}) VALUES ('{{ada@mail.example}}', {}{})", columns,
      bytea_literal(raw), values);
}

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A call for mails with these keys, each to its own recipient.
std::string group(const std::vector<std::string>& keys, const std::string& domain = "mail.example") {
  std::string paths;
  std::string recipients;
  std::string mails;
  std::string names;
  for (const auto& key : keys) {
    const auto* comma = paths.empty() ? "" : ",";
    paths += comma + std::string("'shop@shop.example'");
    recipients += fmt::format("{}'{}@{}'", comma, key, domain);
    mails += comma + bytea_literal(raw_mail);
    names += fmt::format("{}'{}'", comma, key);
  }
  return fmt::format(
      "SELECT string_agg(key || ' ' || id || CASE WHEN is_known THEN ' known' ELSE '' END, ', ' ORDER BY key) FROM "
      "mailroom_submit(ARRAY[{}], ARRAY[{}], ARRAY[{}], ARRAY[{}])",
      paths, recipients, mails, names);
}

}  // namespace

TEST_CASE("what is no mail, or has more than its envelope beside it, is refused at the insert") {
  RawRig rig;
  auto& connection = *rig.connection;
  CHECK(error_of(connection, insert(raw_mail)) == "ok");
  CHECK(error_of(connection, insert("From: a@b.example\r\n\r\n")) == "ok");
  CHECK(error_of(connection, insert("X-First: 1\r\n folded\r\nfrom : a@b.example\r\n\r\nx")) == "ok");
  using namespace std::string_literals;
  for (const auto& [raw, problem] : std::vector<std::pair<std::string, std::string>>{
           {"From: a@b.example\n\nx\n", "a line end other than CRLF"},
           {"From: a@b.example\r\n\r\nx\r\n.\n", "a line end other than CRLF"},
           {"From: a@b.example\r\n\r\nx\rQUIT\r\n", "a line end other than CRLF"},
           {"From: a@b.example\r\n\r\nx\r\r\n", "a line end other than CRLF"},
           {"From: a@b.example\r\n\r\nx\0\r\n"s, "a NUL"},
           {"", "no header field From"},
           {"x", "no header field From"},
           {"To: a@b.example\r\n\r\nFrom: a@b.example\r\n", "no header field From"},
           {"From a@b.example Sat Nov 28\r\nFrom: a@b.example\r\n\r\n", "no header field From"},
           {"X: 1\r\n From: a@b.example\r\n\r\n", "no header field From"}}) {
    INFO(raw);
    CHECK(has_part(error_of(connection, insert(raw)), problem));
  }
  for (const auto& [column, content] :
       std::vector<std::pair<std::string, std::string>>{{"text", "'x'"},
                                                        {"html", "'x'"},
                                                        {"template", "'receipt'"},
                                                        {"data", "'{}'"},
                                                        {"locale", "'de'"},
                                                        {"headers", "'{\"X-A\": \"1\"}'"},
                                                        {"cc", "'{a@b.example}'"},
                                                        {"bcc", "'{a@b.example}'"},
                                                        {"sender", "'a@b.example'"},
                                                        {"reply_to", "'a@b.example'"}}) {
    INFO(column);
    CHECK(has_part(error_of(connection, insert(raw_mail, ", " + column, ", " + content)),
                   "raw mail has other content"));
  }
  CHECK(error_of(connection,
                 insert(raw_mail, ", subject, reference, profile", ", 'x', 'order:17', 'news'")) == "ok");
  CHECK(error_of(connection, insert(raw_mail, ", return_path", ", ''")) == "ok");
  for (const auto* path : {"'Ada <a@b.example>'", "'x'", "'a@b.example '", "'<a@b.example>'"})
    CHECK(has_part(error_of(connection, insert(raw_mail, ", return_path", std::string(", ") + path)),
                   "not an address"));
  CHECK(has_part(error_of(connection,
                          "INSERT INTO mailroom_messages (recipients, subject, text, return_path) VALUES "
                          "('{a@b.example}', 's', 't', 'a@b.example')"),
                 "no raw mail"));
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  CHECK(has_part(error_of(connection, insert(raw_mail, ", action", ", 'magic_link'")), "has a link"));
  const auto many = [](int count) {
    return fmt::format(
        "INSERT INTO mailroom_messages (recipients, raw) SELECT array_agg('u' || g || '@mail.example'), {} "
        "FROM generate_series(1, {}) g",
        bytea_literal(raw_mail), count);
  };
  CHECK(error_of(connection, many(1000)) == "ok");
  CHECK(has_part(error_of(connection, many(1001)), "1001 recipients, at most 1000"));
  connection.transact([&](pqxx::work& transaction) {
    transaction.exec(insert(raw_mail));
    pqxx::subtransaction attempt(transaction);
    CHECK_THROWS_WITH(
        attempt.exec("INSERT INTO mailroom_attachments (message, name, content) SELECT max(id), 'a', '\\x00' "
                     "FROM mailroom_messages"),
        Catch::Matchers::ContainsSubstring("has its attachments in itself"));
  });
}

TEST_CASE("a raw mail is asked for in the caller's transaction, and is gone with it") {
  RawRig rig;
  CHECK_THROWS(rig.connection->transact([&](pqxx::work& transaction) {
    transaction.exec(group({"a", "b"}));
    throw std::runtime_error("the order was refused");
  }));
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_messages") == 0);
  CHECK(rig.send().empty());
}

TEST_CASE("a group of mails is one statement, and each key is one message") {
  RawRig rig;
  auto& connection = *rig.connection;
  CHECK(value<std::string>(connection, group({"a", "b", "c"})) == "a 1, b 2, c 3");
  CHECK(value<std::string>(connection, group({"b"})) == "b 2 known");
  const auto mixed = value<std::string>(connection, group({"b", "d", "a"}));
  CHECK(has_part(mixed, "a 1 known, b 2 known, d "));
  CHECK_FALSE(has_part(mixed, "d 1"));
  CHECK(value<int>(connection, "SELECT count(*) FROM tokens") == 4);
  // The key stands for the envelope, and not for the bytes.
  CHECK(value<std::string>(
            connection,
            fmt::format("SELECT id || ' ' || is_known FROM mailroom_submit(ARRAY['shop@shop.example'], "
                        "ARRAY['a@mail.example'], ARRAY[{}], ARRAY['a'])",
                        bytea_literal("From: other@shop.example\r\n\r\nx\r\n"))) == "1 true");
  CHECK(has_part(error_of(connection, group({"a"}, "other.example")),
                 "another message has the idempotency_key"));
  CHECK(has_part(error_of(connection, group({"e", "a"}, "other.example")),
                 "another message has the idempotency_key"));
  CHECK(has_part(error_of(connection, group({"x", "x"})), "a key of its own"));
  CHECK(has_part(error_of(connection,
                          "SELECT mailroom_submit(ARRAY['',''], ARRAY['a@b.example', 'b@b.example'], ARRAY[" +
                              bytea_literal(raw_mail) + "," + bytea_literal(raw_mail) + "])"),
                 "a key of its own"));
  CHECK(has_part(
      error_of(connection, "SELECT mailroom_submit(ARRAY[''], ARRAY['a@b.example', 'b@b.example'], ARRAY[" +
                               bytea_literal(raw_mail) + "])"),
      "not of the same mails"));
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages") == 4);
}

TEST_CASE("the key of a raw mail that never left is free") {
  RawRig rig;
  auto& connection = *rig.connection;
  CHECK(value<std::string>(connection, group({"a", "b"})) == "a 1, b 2");
  connection.run("SELECT mailroom_cancel(1)");
  const auto again = value<std::string>(connection, group({"a", "b"}));
  CHECK(has_part(again, "b 2 known"));
  CHECK_FALSE(has_part(again, "a 1"));
  CHECK(value<int>(connection, "SELECT count(*) FROM tokens WHERE consumed_at IS NULL") == 2);
  CHECK(value<std::string>(connection, group({"a", "b"})) ==
        again.substr(0, again.find(',')) + " known, b 2 known");
}

TEST_CASE("a call that is made again in the same transaction, or in a savepoint, knows its mail") {
  RawRig rig;
  rig.connection->transact([&](pqxx::work& transaction) {
    pqxx::subtransaction first(transaction);
    CHECK(std::string(first.exec(group({"a"}))[0][0].c_str()) == "a 1");
    CHECK(std::string(first.exec(group({"a"}))[0][0].c_str()) == "a 1 known");
    first.commit();
    CHECK(has_part(transaction.exec(group({"a", "b"}))[0][0].c_str(), "a 1 known, b "));
  });
}

TEST_CASE("a call with a key of a transaction that still runs waits for it") {
  for (const bool commits : {true, false}) {
    RawRig rig;
    const auto second = rig.database.connect();
    std::future<std::string> waits;
    try {
      rig.connection->transact([&](pqxx::work& transaction) {
        transaction.exec(group({"a"}));
        waits = std::async(std::launch::async, [&] {
          return value<std::string>(*second, group({"a", "b"}));
        });
        const auto watcher = rig.database.connect();
        REQUIRE(eventually([&] {
          return value<bool>(*watcher,
                             "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')");
        }));
        if (!commits) throw std::runtime_error("rolled back");
      });
    } catch (const std::runtime_error&) {
      CHECK_FALSE(commits);
    }
    const auto told = waits.get();
    INFO(told);
    CHECK(told.starts_with("a 1 known, b ") == commits);
    CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_messages WHERE idempotency_key = 'a'") ==
          1);
  }
}

TEST_CASE("a role with the function alone submits as itself, and sees what became of its mails") {
  RawRig rig;
  const TestRole role(rig.database, "submitter");
  rig.connection->run("GRANT EXECUTE ON FUNCTION mailroom_submit, mailroom_message_status TO " + role.name());
  db::Connection own(role.conninfo(), "test");
  CHECK(value<std::string>(own, group({"a"})) == "a 1");
  CHECK(value<std::string>(own, "SELECT state FROM mailroom_message_status(1)") == "waiting");
  CHECK(value<std::string>(*rig.connection, "SELECT enqueued_by FROM mailroom_messages") == role.name());
  CHECK(has_part(error_of(own, "SELECT raw FROM mailroom_messages"), "permission denied"));
  CHECK(has_part(error_of(own, insert(raw_mail)), "permission denied"));
  const TestRole other(rig.database, "stranger");
  db::Connection stranger(other.conninfo(), "test");
  CHECK(has_part(error_of(stranger, group({"b"})), "permission denied"));
}

}  // namespace mailroom::test::raw_submit_test
