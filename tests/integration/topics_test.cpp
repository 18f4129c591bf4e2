// What people can unsubscribe from: topics, who gets mails of which, and that no attempt at a mail begins
// after its reader has unsubscribed.

#include <condition_variable>
#include <fmt/format.h>
#include <mutex>

#include "integration/raw_rig.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::topics_test {
namespace {

struct TopicRig : RawRig {
  TopicRig() {
    environment["MAILROOM_SEND_UNSUBSCRIBE_LINK"] = "https://app.example/u/{token}";
    connection->run(
        "SELECT mailroom_create_topic('news', 'Monthly news', '{\"de\": \"Neues im Monat\"}'), "
        "mailroom_create_topic('offers', title => 'Offers'), mailroom_want_outcomes(true)");
  }
  std::int64_t ask(const std::string& to, const std::string& topic) {
    return value<std::int64_t>(
        *connection,
        fmt::format("SELECT mailroom_send(ARRAY['{}'], subject => 's', text => 't', topic => {})", to,
                    topic));
  }
  /// `ada@mail.example news unsubscribed one_click`, in the order of the addresses.
  std::string suppressed() {
    return value<std::string>(
        *connection,
        "SELECT coalesce(string_agg(concat_ws(' ', address, nullif(topic, ''), kind, reason), ', ' ORDER BY address, topic), '') "
        "FROM mailroom_suppressions");
  }
  /// What the application is told of subscriptions.
  std::string told() {
    return value<std::string>(
        *connection,
        "WITH gone AS (DELETE FROM mailroom_outcomes WHERE state LIKE '%subscribed' RETURNING *) "
        "SELECT coalesce(string_agg(concat_ws(' ', state, address, topic, token), ', ' ORDER BY id), '') FROM gone");
  }
};

/// A relay that holds the content of the first mail until it may go on.
struct HoldingRelay {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_begun = false;
  bool goes_on = false;
  TestRelay relay{{.play = [this](const RelayMoment& moment) {
    if (moment.step == RelayStep::end && moment.mail == 1) {
      std::unique_lock lock(mutex);
      has_begun = true;
      changed.notify_all();
      changed.wait(lock, [this] { return goes_on; });
    }
    return RelayAnswer{};
  }}};

  bool waits() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), [this] { return has_begun; });
  }
  void go_on() {
    const std::lock_guard lock(mutex);
    goes_on = true;
    changed.notify_all();
  }
};

}  // namespace

TEST_CASE("a topic is created, changed and retired, and a message of an unknown or retired one is refused") {
  TopicRig rig;
  auto& connection = *rig.connection;
  CHECK(refusal(connection, "SELECT mailroom_create_topic('news', 'x')") ==
        "23505 the topic \"news\" exists");
  CHECK(refusal(connection, "SELECT mailroom_create_topic('News', 'x')")
            .starts_with("23514 \"News\" is not a name"));
  CHECK(refusal(connection, "SELECT mailroom_create_topic('x', E'a\\nb')").starts_with("23514 the title"));
  CHECK(refusal(connection, "SELECT mailroom_create_topic('x', 'x', '{\"deutsch!\": \"x\"}')")
            .starts_with("23514 "));
  CHECK(refusal(connection, "SELECT mailroom_set_topic('x', '{\"title\": \"y\"}')") ==
        "42704 there is no topic \"x\"");
  CHECK(refusal(connection, "SELECT mailroom_set_topic('news', '{\"name\": \"y\"}')") ==
        "22023 a topic has no setting \"name\"");
  connection.run(
      "SELECT mailroom_set_topic('news', '{\"title\": \"News\"}'), mailroom_retire_topic('offers')");
  CHECK(value<std::string>(
            connection, "SELECT title || ' ' || (titles->>'de') FROM mailroom_topics WHERE topic = 'news'") ==
        "News Neues im Monat");
  for (
      const auto* const statement :
      {"SELECT mailroom_send('{{a@x.example}}', subject => 's', text => 't', topic => '{}')",
       "SELECT mailroom_send('{{a@x.example}}', subject => 's', text => 't', topic => '{}', idempotency_key => 'k')",
       "INSERT INTO mailroom_messages (recipients, subject, text, topic) VALUES ('{{a@x.example}}', 's', 't', '{}')"}) {
    CHECK(refusal(connection, fmt::format(fmt::runtime(statement), "other")) ==
          "23503 there is no topic \"other\"");
    CHECK(refusal(connection, fmt::format(fmt::runtime(statement), "offers")) ==
          "23514 the topic \"offers\" is retired");
    CHECK(refusal(connection, fmt::format(fmt::runtime(statement), "news")).empty());
  }
  CHECK(refusal(connection, "UPDATE mailroom_messages SET topic = NULL")
            .starts_with("55000 what is in message "));
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_operations WHERE kind LIKE '% topic'") == 4);
}

TEST_CASE("each way to ask for a mail takes a topic, and a key stands for it too") {
  TopicRig rig;
  auto& connection = *rig.connection;
  const std::string keyed =
      "SELECT mailroom_send('{a@x.example}', subject => 's', text => 't', idempotency_key => 'k', topic => ";
  CHECK(refusal(connection, keyed + "'news')").empty());
  CHECK(refusal(connection, keyed + "'news')").empty());
  CHECK(
      refusal(connection, keyed + "'offers')").starts_with("23505 another message has the idempotency_key"));
  rig.submit(raw_mail, "b@x.example", "shop@shop.example", ", p_topics => ARRAY['news']");
  connection.run(
      "CREATE TABLE users (id int, email text); CREATE TRIGGER welcome AFTER INSERT ON users FOR EACH ROW "
      "EXECUTE FUNCTION mailroom_send_row('welcome', 'email', 'topic:offers'); INSERT INTO users VALUES (1, 'c@x.example')");
  CHECK(value<std::string>(connection, "SELECT string_agg(topic, ' ' ORDER BY id) FROM mailroom_messages") ==
        "news news offers");
}

TEST_CASE("who has unsubscribed from a topic gets all other mails, however the address is written") {
  TopicRig rig;
  auto& connection = *rig.connection;
  const auto change = [&](const std::string& call) {
    return value<bool>(connection, "SELECT mailroom_" + call);
  };
  CHECK(change("unsubscribe('Ada <\"ada\"@B\u00fccher.example>', 'news')"));
  CHECK_FALSE(change("unsubscribe('ada@xn--bcher-kva.EXAMPLE', 'news')"));
  CHECK(rig.suppressed() == "ada@xn--bcher-kva.example news unsubscribed sql");
  CHECK_FALSE(change("is_subscribed('ada@b\u00fccher.example', 'news')"));
  CHECK(change("is_subscribed('ada@b\u00fccher.example', 'offers')"));
  CHECK(rig.told() == "unsubscribed ada@xn--bcher-kva.example news");
  for (const auto* const topic : {"'news'", "'offers'", "NULL"})
    rig.ask("ada@b\u00fccher.example", topic);
  CHECK(rig.send().size() == 2);
  CHECK(rig.outcomes(1) ==
        "ada@b\u00fccher.example cancelled: the address is suppressed: unsubscribed sql (news)");
  CHECK(change("resubscribe('ada@b\u00fccher.example', 'news')"));
  CHECK_FALSE(change("resubscribe('ada@b\u00fccher.example', 'news')"));
  CHECK(rig.told() == "resubscribed ada@xn--bcher-kva.example news");
  rig.ask("ada@b\u00fccher.example", "'news'");
  CHECK(rig.send().size() == 3);
  CHECK(refusal(connection, "SELECT mailroom_unsubscribe('ada@x.example', 'other')") ==
        "23503 there is no topic \"other\"");
  CHECK(refusal(connection, "SELECT mailroom_unsubscribe('ada', 'news')") ==
        "22023 \"ada\" is not an address");
  CHECK(
      value<std::string>(
          connection,
          "SELECT string_agg(kind || ' ' || (details->>'address') || ' ' || (details->>'topic'), ', ' ORDER BY id) "
          "FROM mailroom_operations WHERE kind LIKE '%subscribe'") ==
      "unsubscribe ada@xn--bcher-kva.example news, resubscribe ada@xn--bcher-kva.example news");
}

TEST_CASE("a complaint about a mail with a topic is about that topic, and a hard bounce about all mails") {
  TopicRig rig;
  rig.ask("ada@mail.example", "'news'");
  rig.ask("bob@mail.example", "'news'");
  rig.ask("cid@mail.example", "NULL");
  rig.send();
  rig.connection->run(
      "SELECT mailroom_report('[{\"address\": \"ada@mail.example\", \"kind\": \"complaint\", \"token\": 1}, "
      "{\"address\": \"bob@mail.example\", \"kind\": \"hard\", \"token\": 2}, "
      "{\"address\": \"cid@mail.example\", \"kind\": \"complaint\", \"token\": 3}]')");
  CHECK(rig.suppressed() ==
        "ada@mail.example news complaint feedback, bob@mail.example bounce user_unknown, "
        "cid@mail.example complaint feedback");
  rig.connection->run(
      "SELECT mailroom_report('{\"address\": \"ada@mail.example\", \"kind\": \"unsubscribed\", \"token\": 1}')");
  CHECK(rig.told() == "unsubscribed ada@mail.example news 1");
}

TEST_CASE("a recipient chooses topics by his mail, each once, and among those of its profile") {
  TopicRig rig;
  auto& connection = *rig.connection;
  connection.run("SELECT mailroom_create_topic('other', 'Other', profile => 'brand')");
  rig.ask("ada@mail.example", "'offers'");
  rig.ask("bob@mail.example", "NULL");
  rig.send();
  const std::string list =
      "SELECT coalesce(string_agg(topic || ' ' || is_on || ' ' || is_own, ', '), '') FROM mailroom_preferences({})";
  const auto listed = [&](int token) {
    return value<std::string>(connection, fmt::format(fmt::runtime(list), token));
  };
  CHECK(listed(1) == "offers true true, news true false");
  CHECK(listed(2).empty());
  CHECK(listed(99).empty());
  const auto prefer = [&](const std::string& on, const std::string& off) {
    return value<int>(connection,
                      fmt::format("SELECT mailroom_prefer(1, '{{{}}}', '{{{}}}', 'page')", on, off));
  };
  CHECK(prefer("", "offers,news,other,nothing") == 2);
  CHECK(prefer("", "offers") == 0);
  CHECK(rig.suppressed() ==
        "ada@mail.example news unsubscribed unsubscribed, ada@mail.example offers unsubscribed unsubscribed");
  CHECK(rig.told() == "unsubscribed ada@mail.example news 1, unsubscribed ada@mail.example offers 1");
  CHECK(prefer("news", "offers") == 1);
  CHECK(listed(1) == "offers false true, news true false");
  CHECK(rig.told() == "resubscribed ada@mail.example news 1");
  CHECK(
      connection.run("SELECT mailroom_prefer(99, '{}', '{news}', 'page') AS changed")[0].is_null("changed"));
}

TEST_CASE(
    "no attempt begins after its reader has unsubscribed, though the mail was claimed and made before") {
  TopicRig rig;
  HoldingRelay holding;
  for (const auto* const to : {"first@mail.example", "ada@mail.example", "bob@mail.example"})
    rig.ask(to, "'news'");
  rig.ask("ada@mail.example", "NULL");
  TestSender sender(rig.database.conninfo(), holding.relay.url(), {"--once", "--connections", "1"},
                    {{"MAILROOM_SEND_UNSUBSCRIBE_LINK", "https://app.example/u/{token}"}});
  REQUIRE(holding.waits());
  rig.connection->run("SELECT mailroom_unsubscribe('ada@mail.example', 'news')");
  // On its way: the relay has its content.
  rig.connection->run("SELECT mailroom_unsubscribe('first@mail.example', 'news')");
  holding.go_on();
  sender.wait();
  std::string taken;
  for (const auto& mail : holding.relay.taken())
    taken += mail.to + " ";
  CHECK(taken == "first@mail.example bob@mail.example ada@mail.example ");
  CHECK(rig.outcomes(2) == "ada@mail.example cancelled: the address is suppressed: unsubscribed sql (news)");
  CHECK(rig.outcomes(1).starts_with("first@mail.example accepted"));
  const auto shown = rig.run({"audit", "first@mail.example"}).output;
  CAPTURE(shown);
  CHECK(shown.find("it was on its way when its reader unsubscribed") != std::string::npos);
  CHECK(shown.find("mailroom suppression remove 'first@mail.example' --topic news") != std::string::npos);
}

}  // namespace mailroom::test::topics_test
