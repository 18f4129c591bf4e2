// The Message-ID, the Date and the times of a mail: of a retry, of one that is sent again on purpose, and of
// another database.

#include "base/pattern.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::resend_test {
namespace {

std::string found_in(const TakenMail& mail, const std::string& form) {
  const auto found = Pattern(form).first(mail.message);
  return found ? (*found)[1] : "";
}

std::string id_of(const TakenMail& mail) {
  return found_in(mail, "Message-ID: <([^>]*)>");
}

std::string date_of(const TakenMail& mail) {
  return found_in(mail, "Date: ([^\r]*)\r");
}

/// The mails that a sender delivers until nothing is due.
std::vector<TakenMail> send_all(const TestDatabase& database, TestRelay::Options options = {}) {
  TestRelay relay(std::move(options));
  TestSender sender(database.conninfo(), relay.url(), {"--once"});
  REQUIRE(sender.wait() == 0);
  return relay.taken();
}

/// A time as the header Date has it, in seconds since 1970.
std::int64_t seconds_of(db::Connection& connection, const std::string& date) {
  return connection
      .run("SELECT extract(epoch FROM to_timestamp($1, 'DD Mon YYYY HH24:MI:SS') AT TIME ZONE 'UTC')::bigint",
           date.substr(5, 20))[0][0]
      .as<std::int64_t>();
}

std::int64_t now_of(db::Connection& connection) {
  return value<std::int64_t>(connection, "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint");
}

void age_tokens(db::Connection& connection, int seconds) {
  connection.run("UPDATE tokens SET created_at = created_at - $1, expires_at = expires_at - $1", seconds);
}

}  // namespace

TEST_CASE("a retry has the Message-ID and the Date of the first attempt, and a mail sent again has its own") {
  DeliveryRig rig(1);
  const OperatorRig person(rig.database);
  age_tokens(*rig.connection, 300);
  REQUIRE(
      send_all(rig.database, {.play = TestRelay::at(RelayStep::end, RelayAnswer::reply("451 4.3.0 busy"))})
          .empty());
  REQUIRE(rig.count("deferred") == 1);
  rig.due_now();
  const auto retried = send_all(rig.database);
  REQUIRE(retried.size() == 1);
  CHECK(seconds_of(*rig.connection, date_of(retried[0])) ==
        value<std::int64_t>(*rig.connection, "SELECT created_at FROM tokens"));

  const auto plan = person.mailroom({"rewind-cursor", "--by", "1h", "--dry-run"});
  CHECK(plan.output.find("in a mail with a Message-ID and a Date of its own.\n"
                         "It was accepted before: the same person is mailed again.") != std::string::npos);
  const auto before = now_of(*rig.connection);
  REQUIRE(person.mailroom({"rewind-cursor", "--by", "1h", "--yes"}).status == 0);
  const auto after = now_of(*rig.connection);
  const auto again = send_all(rig.database);
  REQUIRE(again.size() == 1);
  CHECK(id_of(again[0]) != id_of(retried[0]));
  CHECK(token_id_of(again[0]) == 1);
  const auto date = seconds_of(*rig.connection, date_of(again[0]));
  CHECK(date >= before);
  CHECK(date <= after);
  // Ten minutes are left of fifteen.
  CHECK(again[0].message.find("10 minutes") != std::string::npos);

  REQUIRE(person.mailroom({"resend", "user1@test.example", "--yes"}).status == 0);
  const auto single = send_all(rig.database);
  REQUIRE(single.size() == 1);
  CHECK(id_of(single[0]) != id_of(again[0]));
  CHECK(id_of(single[0]) != id_of(retried[0]));
}

TEST_CASE("attempts of one sending have one Message-ID, whatever the relay does between them") {
  DeliveryRig rig(1);
  std::vector<std::string> ids;
  const OperatorRig person(rig.database);
  for (const bool is_resent : {false, true}) {
    if (is_resent) REQUIRE(person.mailroom({"rewind-cursor", "--to-start", "--yes"}).status == 0);
    // The relay takes the mail, and its answer is lost.
    const auto lost =
        send_all(rig.database,
                 {.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::close))});
    REQUIRE(lost.size() == 1);
    REQUIRE(rig.count("deferred") == 1);
    rig.due_now();
    const auto mails = send_all(rig.database);
    REQUIRE(mails.size() == 1);
    ids.insert(ids.end(), {id_of(lost[0]), id_of(mails[0])});
  }
  REQUIRE(ids.size() == 4);
  CHECK(ids[0] == ids[1]);
  CHECK(ids[2] == ids[3]);
  CHECK(ids[0] != ids[2]);
}

TEST_CASE("after --extend a mail is dated and its times count from then") {
  DeliveryRig rig(1);
  const OperatorRig person(rig.database);
  age_tokens(*rig.connection, 19'800);
  REQUIRE(send_all(rig.database).empty());
  const auto command = GENERATE("rewind-cursor --by 6h --extend 15m", "resend --since 6h --extend 15m",
                                "resend token:1 --extend 15m");
  const auto before = now_of(*rig.connection);
  REQUIRE(person.type(std::string("mailroom ") + command).status == 0);
  const auto after = now_of(*rig.connection);
  const auto mails = send_all(rig.database);
  REQUIRE(mails.size() == 1);
  CHECK(mails[0].message.find("15 minutes") != std::string::npos);
  CHECK(mails[0].message.find("6 hours") == std::string::npos);
  const auto date = seconds_of(*rig.connection, date_of(mails[0]));
  CHECK(date >= before);
  CHECK(date <= after);
}

TEST_CASE("two databases, and a copy of one, have no Message-ID in common") {
  DeliveryRig one(1);
  DeliveryRig other(1);
  one.connection.reset();
  const TestDatabase copy(TestDatabase::Schema::none, "TEMPLATE " + one.database.name());
  one.connection = one.database.connect();
  copy.connect()->run("SELECT mailroom_adopt(NULL)");
  const auto first = send_all(one.database);
  const auto second = send_all(other.database);
  const auto third = send_all(copy);
  REQUIRE(first.size() + second.size() + third.size() == 3);
  CHECK(id_of(first[0]) != id_of(second[0]));
  CHECK(id_of(first[0]) != id_of(third[0]));
  CHECK(token_of(first[0]) == token_of(third[0]));
  // Nor has a token that gets the id of an earlier one.
  one.connection->run(
      "DELETE FROM tokens; DELETE FROM mailroom_deliveries; ALTER SEQUENCE tokens_id_seq RESTART");
  one.connection->run("UPDATE mailroom_batches SET cursor = 0");
  insert_accounts(*one.connection, 1, "again");
  const auto reused = send_all(one.database);
  REQUIRE(reused.size() == 1);
  CHECK(token_id_of(reused[0]) == token_id_of(first[0]));
  CHECK(id_of(reused[0]) != id_of(first[0]));
}

}  // namespace mailroom::test::resend_test
