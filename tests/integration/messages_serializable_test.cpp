// Producers in SERIALIZABLE: mails that have nothing in common fail no oftener than rows of a plain table.

#include <fmt/format.h>
#include <future>

#include "support/catch.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::messages_serializable_test {
namespace {

/// How many of 240 transactions of eight clients fail, each with an order and `statement`, whose {} are
/// numbers of their own.
int failures(const DatabaseRig& rig, const std::string& statement) {
  std::vector<std::future<int>> clients;
  for (int client = 0; client < 8; ++client) {
    clients.push_back(std::async(std::launch::async, [&rig, &statement, client] {
      const auto connection = rig.database.connect();
      int failed = 0;
      for (int i = 0; i < 30; ++i) {
        const auto number = std::to_string(client * 100 + i);
        auto sql = statement;
        for (auto at = sql.find('#'); at != std::string::npos; at = sql.find('#', at))
          sql.replace(at, 1, number);
        connection->run("BEGIN ISOLATION LEVEL SERIALIZABLE");
        connection->run("INSERT INTO orders (n) VALUES (1)");
        auto error = refusal(*connection, sql);
        if (error.empty()) error = refusal(*connection, "COMMIT");
        if (!error.empty()) {
          // Another error is none that a client would try again.
          failed += error.starts_with("40001 ") ? 1 : 1000;
          connection->run("ROLLBACK");
        }
      }
      return failed;
    }));
  }
  int all = 0;
  for (auto& client : clients)
    all += client.get();
  return all;
}

}  // namespace

TEST_CASE("serializable transactions that ask for mails fail no oftener than those that insert a row") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run("CREATE TABLE orders (id bigserial PRIMARY KEY, n int)");
  connection.run("SELECT mailroom_send('{u@mail.example}', subject => 's', text => 't')");
  const auto plain = failures(rig, "SELECT 1");
  CHECK(plain == 0);
  for (
      const auto* statement :
      {"SELECT mailroom_send('{u@mail.example}', subject => 's', text => 't')",
       "SELECT mailroom_send('{u@mail.example}', subject => 's', text => 't', idempotency_key => 'k#', reference => 'order:#')",
       "INSERT INTO mailroom_messages (recipients, subject, text, reference) VALUES ('{u@mail.example}', 's', 't', 'order:#')",
       "INSERT INTO mailroom_messages (recipients, subject, text, idempotency_key) VALUES ('{u@mail.example}', 's', 't', 'i#')",
       "SELECT mailroom_send('{u@mail.example}', subject => 's', text => 't', send_after => now() + interval '1 day')",
       "SELECT mailroom_send('{u@mail.example}', subject => 's', text => 't', attachments => '[{\"name\": \"a\", "
       "\"content\": \"MQ==\"}, {\"name\": \"b\", \"content\": \"MQ==\"}]')"}) {
    INFO(statement);
    CHECK(failures(rig, statement) == plain);
  }
}

}  // namespace mailroom::test::messages_serializable_test
