// A copy of the database mails nobody until it is adopted, and the original never has to be.

#include <filesystem>
#include <fmt/format.h>

#include "base/actor.hpp"
#include "queue/home.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/operator_rig.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::copy_test {
namespace {

/// Runs `mailroom send --once` on a database; returns its exit status, and expects mails only with 0.
int send_from(const TestDatabase& database, std::size_t mails) {
  TestRelay relay;
  TestSender sender(database.conninfo(), relay.url(), {"--once"});
  const int status = sender.wait();
  INFO(sender.log());
  CHECK(relay.taken().size() == (status == 0 ? mails : 0));
  if (status != 0) {
    CHECK(count(sender.log(), "nothing is sent from this database") == 1);
    CHECK(count(sender.log(), "mailroom adopt ") == 1);
  }
  return status;
}

FinishedRun adopt(const TestDatabase& database, const std::vector<std::string>& options) {
  std::vector<std::string> command{mailroom_binary, "adopt", "--yes"};
  command.insert(command.end(), options.begin(), options.end());
  return run_to_end(command, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
}

/// Restores a dump of `from` into `to`.
void restore(const TestDatabase& from, const TestDatabase& to, const std::string& how = "") {
  const auto run =
      run_to_end({"/bin/sh", "-c", "pg_dump " + how + " " + from.name() + " | psql -Xq " + to.name()}, {});
  REQUIRE(run.status == 0);
}

std::string problem_of(db::Connection& connection) {
  return queue::read_home(connection).problem;
}

}  // namespace

TEST_CASE(
    "a database made of another as its template mails nobody until it is adopted, and the other goes on") {
  DatabaseRig rig;
  insert_accounts(*rig.connection, 3);
  rig.connection.reset();
  const TestDatabase copy(TestDatabase::Schema::none, "TEMPLATE " + rig.database.name());
  CHECK(send_from(copy, 3) == 3);
  CHECK(problem_of(*copy.connect()) == "it was created as a copy of another database");
  CHECK(send_from(rig.database, 3) == 0);

  const auto adopted = adopt(copy, {"--reason", "moved"});
  CHECK(adopted.status == 0);
  CHECK(adopted.output.find("3 tokens, 0 tokens for another attempt, and 0 messages scheduled") !=
        std::string::npos);
  CHECK(send_from(copy, 3) == 0);
  CHECK(value<std::string>(*copy.connect(), "SELECT reason FROM mailroom_operations WHERE kind = 'adopt'") ==
        "moved");
  CHECK(adopt(copy, {}).output.find("nothing to do") != std::string::npos);
}

TEST_CASE("a restored dump mails nobody, wherever it is") {
  DatabaseRig rig;
  insert_accounts(*rig.connection, 2);
  const TestDatabase copy(TestDatabase::Schema::none);
  restore(rig.database, copy);
  CHECK(problem_of(*copy.connect()) == "its tables were restored from a dump");
  CHECK(send_from(copy, 2) == 3);
  TestCollector collector(copy.conninfo(), {"--once"}, {});
  CHECK(collector.wait() == 3);
  CHECK(collector.output().empty());
  adopt(copy, {});
  CHECK(send_from(copy, 2) == 0);
}

TEST_CASE("a consumer stops that runs while a dump is restored beneath it") {
  DatabaseRig production;
  insert_accounts(*production.connection, 5);
  DatabaseRig staging;
  TestRelay relay;
  TestSender sender(staging.database.conninfo(), relay.url(), {"--poll-interval", "20ms"});
  REQUIRE(sender.connected());
  staging.connection.reset();
  restore(production.database, staging.database, "--clean --if-exists");
  // 5 where it has looked while the tables were gone.
  const int status = sender.wait();
  CHECK((status == 3 || status == 5));
  INFO(sender.log());
  CHECK(relay.taken().empty());
}

TEST_CASE("a claim looks whether the tables are still those that mails are sent from") {
  DatabaseRig rig;
  TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--poll-interval", "20ms"});
  REQUIRE(sender.connected());
  rig.connection->run("BEGIN");
  insert_accounts(*rig.connection, 1);
  rig.connection->run("UPDATE mailroom_home SET tokens = (tokens::bigint + 1)::oid");
  rig.connection->run("COMMIT");
  CHECK(sender.wait() == 3);
  INFO(sender.log());
  CHECK(relay.taken().empty());
}

TEST_CASE("what is no copy needs no adopt: another name, pg_upgrade, a role of before") {
  DatabaseRig rig;
  insert_accounts(*rig.connection, 1);
  SECTION("another name of the database and the schema's tables anew") {
    rig.connection->run("VACUUM FULL tokens");
    CHECK(problem_of(*rig.connection).empty());
    const auto renamed = rig.database.name() + "_renamed";
    rig.connection.reset();
    db::Connection admin("dbname=postgres", "test");
    admin.run("ALTER DATABASE " + rig.database.name() + " RENAME TO " + renamed);
    CHECK(problem_of(*std::make_unique<db::Connection>("dbname=" + renamed, "test")).empty());
    admin.run("ALTER DATABASE " + renamed + " RENAME TO " + rig.database.name());
  }
  SECTION("another identifier of the system, and all oids as before") {
    rig.connection->run("UPDATE mailroom_home SET system_identifier = system_identifier + 1");
    CHECK(problem_of(*rig.connection).empty());
    // A new cluster with tables of the same oids has not used as many transaction ids.
    rig.connection->run("UPDATE mailroom_home SET reached = '4000000000000'");
    CHECK(problem_of(*rig.connection) == "its tables were restored from a dump");
  }
  SECTION("a server that keeps the identifier of the system to itself") {
    rig.connection->run("UPDATE mailroom_home SET system_identifier = NULL");
    CHECK(problem_of(*rig.connection).empty());
  }
  SECTION("a migration of a database that is served") {
    rig.connection->run("DELETE FROM mailroom_home");
    CHECK(problem_of(*rig.connection) == "nobody has said that its mails are sent from here");
  }
}

TEST_CASE("only the hosts that are named may serve a database, as a physical copy looks like the original") {
  DatabaseRig rig;
  insert_accounts(*rig.connection, 1);
  CHECK(adopt(rig.database, {"--host", "elsewhere", "--host", "nowhere"}).status == 0);
  CHECK(send_from(rig.database, 1) == 3);
  CHECK(problem_of(*rig.connection).empty());
  CHECK(adopt(rig.database, {"--host", host_name()}).status == 0);
  CHECK(send_from(rig.database, 1) == 0);
  CHECK(adopt(rig.database, {"--any-host"}).status == 0);
  CHECK(queue::read_home(*rig.connection).hosts.empty());
}

TEST_CASE("a consumer that is connected ends at its next claim once another host is to serve the database") {
  DatabaseRig rig;
  insert_accounts(*rig.connection, 2);
  const auto session = attach(rig.database);
  const auto lease = session->claim({.limit = 1, .partial = true});
  REQUIRE(lease.lease);
  CHECK(adopt(rig.database, {"--host", "elsewhere"}).status == 0);
  const auto receipt = claim::Receipt{*lease.lease, {.emitted = 1}};
  CHECK_THROWS_AS(session->claim({.limit = 1, .partial = true, .receipt = receipt}), db::DatabaseError);
  // What it has done is acknowledged.
  CHECK_NOTHROW(session->claim({.limit = 0, .receipt = receipt}));
  CHECK(adopt(rig.database, {"--host", host_name()}).status == 0);
  CHECK(session->claim({.limit = 1, .partial = true}).lease);
}

TEST_CASE("status and doctor name a consumer that is connected from a host that may not serve the database") {
  DatabaseRig rig;
  CHECK(adopt(rig.database, {"--host", host_name()}).status == 0);
  const OperatorRig rig_of_operator(rig.database);
  const auto told = [&] {
    return std::pair{rig_of_operator.mailroom({"status"}).output,
                     rig_of_operator.mailroom({"doctor"}).output};
  };
  const auto text = [](const std::string& output) {
    std::string words;
    for (const char c : output) {
      const bool is_blank = c == ' ' || c == '\n';
      if (!is_blank || !words.ends_with(' ')) words += is_blank ? ' ' : c;
    }
    return words;
  };
  CHECK(text(told().first).find("may not serve this database") == std::string::npos);
  CHECK(text(told().second).find("may not serve this database") == std::string::npos);
  const db::Connection laptop({rig.database.conninfo() + " application_name='mailroom send eve@laptop:77'"},
                              "test");
  const auto fix = fmt::format("SELECT pg_terminate_backend({});", laptop.backend_pid());
  const auto [status, doctor] = told();
  for (const auto& output : {status, doctor}) {
    CAPTURE(output);
    CHECK(text(output).find("send eve@laptop:77 is connected from a host that may not serve this database") !=
          std::string::npos);
    CHECK(text(output).find(fix) != std::string::npos);
  }
}

TEST_CASE(
    "the versions that know of copies take the place where they are made for the one that mails are sent from") {
  const TestDatabase database(TestDatabase::Schema::none);
  migrate(*database.connect());
  CHECK(problem_of(*database.connect()).empty());
}

}  // namespace mailroom::test::copy_test
