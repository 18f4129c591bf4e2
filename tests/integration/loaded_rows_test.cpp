// Rows that were asked for in another database mail nobody here, whatever brings them; docs/copies.md has a
// row for each of these.

#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <set>

#include "queue/home.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::loaded_rows_test {
namespace {

constexpr const char* each_table =
    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname "
    "NOT IN ('schema_migrations', 'mailroom_schema_history') ORDER BY relname";

/// Two databases that were migrated on their own, as production and staging are.
struct TwoPlaces {
  TestDatabase production{TestDatabase::Schema::none};
  std::optional<TestDatabase> staging{};

  TwoPlaces() {
    migrate(*production.connect());
    renew_staging();
  }
  void renew_staging() {
    staging.reset();
    staging.emplace(TestDatabase::Schema::none);
    migrate(*staging->connect());
  }
};

/// Runs `mailroom send --once`; returns its exit status and the addresses that got a mail.
struct Sent {
  int status = 0;
  std::set<std::string> to{};
};
Sent send_from(const TestDatabase& database) {
  TestRelay relay;
  TestSender sender(database.conninfo(), relay.url(), {"--once"});
  Sent sent{.status = sender.wait()};
  INFO(sender.log());
  for (const auto& mail : relay.taken())
    sent.to.insert(mail.to);
  if (sent.status == 3) CHECK(count(sender.log(), "nothing is sent from this database: ") == 1);
  return sent;
}

void ask_for(db::Connection& connection, const std::string& to, const std::string& more = "") {
  connection.run(
      fmt::format("SELECT mailroom_send('{{{}@mail.example}}', subject => 's', text => 't'{})", to, more));
}

/// Two mails have left, two wait, one is scheduled, and an account waits for its activation.
void fill(const TestDatabase& database) {
  const auto connection = database.connect();
  ask_for(*connection, "sent1");
  ask_for(*connection, "sent2");
  REQUIRE(send_from(database).to.size() == 2);
  connection->run("INSERT INTO accounts (email, login) VALUES ('account@mail.example', 'account')");
  ask_for(*connection, "waits1");
  ask_for(*connection, "waits2");
  ask_for(*connection, "later", ", send_after => clock_timestamp() + interval '100 ms'");
  connection->run("SELECT pg_sleep(0.15)");
}

/// Errors are left to the load, as whoever refreshes a database leaves them. `filter` changes the rows on
/// their way.
void load(const TwoPlaces& places, const std::string& options, const std::string& settings = "",
          const std::string& filter = "cat") {
  const auto run =
      run_to_end({"/bin/sh", "-c",
                  fmt::format("pg_dump --data-only {} {} 2>/dev/null | {} | PGOPTIONS='{}' psql -Xq {} "
                              ">/dev/null 2>&1",
                              options, places.production.name(), filter, settings, places.staging->name())},
                 {});
  REQUIRE(run.status == 0);
}

void run_in_staging(const TwoPlaces& places, const std::string& sql) {
  places.staging->connect()->run(sql);
}

void truncate_all(const TwoPlaces& places) {
  const auto connection = places.staging->connect();
  for (const auto& table : connection->run(each_table).values<std::string>())
    connection->run("TRUNCATE " + table + " CASCADE");
}

/// Replicates what was asked for and what became of it, until the other database's tokens are here.
void replicate(const TwoPlaces& places) {
  const auto from = places.production.connect();
  const auto to = places.staging->connect();
  const auto& slot = places.production.name();
  from->run(
      "CREATE PUBLICATION rows FOR TABLE accounts, tokens, mailroom_messages, mailroom_attachments, mailroom_schedule, "
      "mailroom_batches, mailroom_gaps, mailroom_deliveries");
  from->run("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", slot);
  to->run(fmt::format(
      "CREATE SUBSCRIPTION rows CONNECTION 'host={1} port={2} user={3} dbname={0}' PUBLICATION rows WITH "
      "(create_slot = false, slot_name = '{0}')",
      slot, std::getenv("PGHOST"), std::getenv("PGPORT"), std::getenv("PGUSER")));
  CHECK(eventually([&] {
    return value<int>(*to, "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'") == 0;
  }));
  CHECK(value<int>(*to, "SELECT count(*) FROM tokens") == 5);
  to->run("ALTER SUBSCRIPTION rows DISABLE");
  to->run("ALTER SUBSCRIPTION rows SET (slot_name = NONE)");
  to->run("DROP SUBSCRIPTION rows");
  // No database is dropped that has one.
  CHECK(eventually([&] {
    from->run(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database() AND "
        "NOT active");
    return from->run("SELECT FROM pg_replication_slots WHERE database = current_database()").empty();
  }));
  // What status prints for sequences that replication leaves behind.
  for (const auto* const table : {"tokens", "mailroom_batches", "mailroom_messages"})
    to->run(fmt::format("SELECT setval('{0}_id_seq', max(id)) FROM {0}", table));
}

struct Vessel {
  std::string name;
  std::function<void(const TwoPlaces&)> bring;
  int status;       ///< of `send --once`; 0: nothing waits in what it brings
  int adopted = 0;  ///< how many addresses get a mail once the rows are adopted
};

const std::vector<Vessel>& vessels() {
  static const std::vector<Vessel> all{
      {"data without triggers", [](const TwoPlaces& p) { load(p, "--disable-triggers"); }, 3, 4},
      {"data with triggers", [](const TwoPlaces& p) { load(p, ""); }, 3, 1},
      {"messages without triggers",
       [](const TwoPlaces& p) { load(p, "--disable-triggers -t mailroom_messages"); }, 0},
      {"messages with triggers", [](const TwoPlaces& p) { load(p, "-t mailroom_messages"); }, 0},
      {"accounts with triggers", [](const TwoPlaces& p) { load(p, "-t accounts"); }, 0},
      {"tokens, accounts and messages",
       [](const TwoPlaces& p) {
         load(p, "--disable-triggers -t accounts -t tokens -t mailroom_messages -t tokens_id_seq");
       },
       3, 5},
      {"everything, after TRUNCATE of everything",
       [](const TwoPlaces& p) {
         truncate_all(p);
         load(p, "--disable-triggers");
       },
       3, 4},
      {"rows by INSERT, in the role of a replica",
       [](const TwoPlaces& p) { load(p, "--column-inserts", "-c session_replication_role=replica"); }, 3, 4},
      {"rows by INSERT", [](const TwoPlaces& p) { load(p, "--column-inserts"); }, 3, 1},
      {"anonymized in place",
       [](const TwoPlaces& p) {
         load(p, "--disable-triggers");
         run_in_staging(p, "UPDATE accounts SET email = 'masked' || id || '@mail.example'");
         run_in_staging(p,
                        "UPDATE mailroom_messages SET recipients = ARRAY['masked' || id || '@mail.example']");
       },
       3, 4},
      {"masked on their way",
       [](const TwoPlaces& p) { load(p, "--disable-triggers", "", "sed 's/[a-z0-9]*@mail/masked@mail/'"); },
       3, 1},
      {"logical replication", replicate, 3, 4},
  };
  return all;
}

std::string problem_of(const TestDatabase& database) {
  return queue::read_home(*database.connect()).problem;
}

}  // namespace

TEST_CASE("rows that were asked for in another database are mailed by nobody until they are adopted") {
  TwoPlaces places;
  fill(places.production);
  for (const auto& vessel : vessels()) {
    INFO(vessel.name);
    places.renew_staging();
    vessel.bring(places);
    const auto first = send_from(*places.staging);
    CHECK(first.status == vessel.status);
    CHECK(first.to.empty());
    CHECK(problem_of(*places.staging).empty() == (vessel.status == 0));
    CHECK(send_from(*places.staging).to.empty());
    CHECK(run_to_end({mailroom_binary, "adopt", "--yes"},
                     {{"MAILROOM_DATABASE_URL", places.staging->conninfo()}})
              .status == 0);
    CHECK(problem_of(*places.staging).empty());
    const auto adopted = send_from(*places.staging);
    CHECK(adopted.status == 0);
    CHECK(adopted.to.size() == static_cast<std::size_t>(vessel.adopted));
    // Its mails that have left are sent nowhere again.
    if (vessel.adopted != 5) {
      CHECK(adopted.to.count("sent1@mail.example") == 0);
    }
  }
  // The other database sends its own all the same.
  CHECK(send_from(places.production).to.size() == 4);
}

TEST_CASE("rows of a refresh are not those that were adopted before") {
  TwoPlaces places;
  fill(places.production);
  const TestDatabase copy(TestDatabase::Schema::none);
  REQUIRE(
      run_to_end({"/bin/sh", "-c", "pg_dump " + places.production.name() + " | psql -Xq " + copy.name()}, {})
          .status == 0);
  copy.connect()->run("SELECT mailroom_adopt(NULL)");
  CHECK(send_from(copy).to.size() == 4);
  ask_for(*places.production.connect(), "newer");
  for (const auto& table : copy.connect()->run(each_table).values<std::string>()) {
    if (table != "mailroom_home") copy.connect()->run("TRUNCATE " + table + " CASCADE");
  }
  REQUIRE(run_to_end({"/bin/sh", "-c",
                      "pg_dump --data-only --disable-triggers " + places.production.name() + " | psql -Xq " +
                          copy.name() + " >/dev/null 2>&1"},
                     {})
              .status == 0);
  const auto sent = send_from(copy);
  CHECK(sent.status == 3);
  CHECK(sent.to.empty());
}

TEST_CASE("an open lease, a deferral and a gap of another database are sent by nobody either") {
  TwoPlaces places;
  const auto production = places.production.connect();
  ask_for(*production, "first");
  ask_for(*production, "second");
  SECTION("a lease") {
    production->run("SELECT mailroom_attach('mailroom')");
    production->run(
        "SELECT mailroom_claim(pg_backend_pid(), 'mailroom', 10, true, true, true, true, NULL, NULL)");
  }
  SECTION("a deferral") {
    TestRelay relay(TestRelay::Options{.play = [](const RelayMoment& moment) {
      return moment.step == RelayStep::rcpt ? RelayAnswer::reply("450 4.2.1 later") : RelayAnswer();
    }});
    TestSender sender(places.production.conninfo(), relay.url(), {"--once"});
    CHECK(sender.wait() == 0);
    REQUIRE(value<int>(*production,
                       "SELECT count(*) FROM mailroom_deliveries WHERE not_before IS NOT NULL") == 2);
    due_now(*production);
  }
  SECTION("a replay") {
    REQUIRE(send_from(places.production).to.size() == 2);
    production->run("SELECT mailroom_rewind('mailroom', 0, 1000, '{}')");
  }
  load(places, "--disable-triggers");
  const auto sent = send_from(*places.staging);
  CHECK(sent.status == 3);
  CHECK(sent.to.empty());
  CHECK(!problem_of(*places.staging).empty());
}

TEST_CASE(
    "rows that do not say where they were asked for were asked for here: a fixture, a test, an old dump") {
  TwoPlaces places;
  const auto staging = places.staging->connect();
  staging->run(
      "INSERT INTO mailroom_messages (id, recipients, subject, text, created_at) VALUES (7, '{fixture@mail.example}', "
      "'s', 't', now() - interval '1 day')");
  staging->run(
      "INSERT INTO mailroom_messages (recipients, subject, text, home) VALUES ('{null@mail.example}', 's', 't', NULL)");
  staging->run(
      "INSERT INTO accounts (id, email, login, mailroom_home) VALUES (70, 'account@mail.example', 'x', NULL)");
  CHECK(send_from(*places.staging).to ==
        std::set<std::string>{"account@mail.example", "fixture@mail.example", "null@mail.example"});
  SECTION("its own rows come back from a dump of it") {
    ask_for(*staging, "again");
    REQUIRE(
        run_to_end(
            {"/bin/sh", "-c",
             fmt::format("cd $(mktemp -d) && pg_dump --data-only --disable-triggers -t tokens -f rows {0} && "
                         "psql -Xqc 'DELETE FROM tokens' {0} && psql -Xq -f rows {0}",
                         places.staging->name())},
            {})
            .status == 0);
    CHECK(send_from(*places.staging).to == std::set<std::string>{"again@mail.example"});
  }
}

}  // namespace mailroom::test::loaded_rows_test
