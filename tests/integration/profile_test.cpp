// Profiles of mails: a sender, a link, templates and relays of their own, and no delay by those of others.

#include <atomic>
#include <csignal>
#include <fmt/format.h>
#include <map>
#include <set>

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::profile_test {
namespace {

/// A sender with a configuration file that has the profile `acme`, whose relay is `acme`.
struct ProfileRig : DeliveryRig {
  TemporaryDirectory directory;
  TestRelay main;
  TestRelay acme;

  explicit ProfileRig(std::function<RelayAnswer(const RelayMoment&)> play = {})
      : DeliveryRig(0), acme(TestRelay::Options{.play = std::move(play)}) {}

  std::map<std::string, std::string> environment(const std::string& more = {}) {
    directory.write("templates/receipt.subject", "Acme says thank you");
    directory.write("templates/receipt.txt", "{{email}} at Acme {{link}}");
    return {{"MAILROOM_CONFIG",
             directory.write(
                 "mailroom.yaml",
                 fmt::format("send:\n  timeout: 1s\nprofiles:\n  acme:\n    relay: {}\n    from: Acme "
                             "<hello@acme.example>\n    reply_to: help@acme.example\n"
                             "    headers: ['X-Brand: acme']\n    link: https://acme.example/{{token}}\n"
                             "    templates: templates\n{}",
                             acme.url(), more))}};
  }
  void send_once(const std::string& more = {}) {
    TestSender sender(database.conninfo(), main.url(), {"--once"}, environment(more));
    CHECK(sender.wait() == 0);
    INFO(sender.log());
  }
  /// `count` messages of a profile, to NAME1@mail.example and so on.
  void ask(const std::string& name, int count, const std::string& profile) {
    connection->run(
        "SELECT mailroom_send(ARRAY[$1 || i || '@mail.example'], subject => 'Hello', text => 'Hello', profile => $3) "
        "FROM generate_series(1, $2) i",
        name, count, profile);
  }
  int accepted(const std::string& name) {
    return value<int>(*connection,
                      fmt::format("SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted' AND "
                                  "address LIKE '{}%'",
                                  name));
  }
};

std::multiset<std::string> recipients_of(const TestRelay& relay) {
  std::multiset<std::string> all;
  for (const auto& mail : relay.taken())
    all.insert(mail.to);
  return all;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a mail has the sender, the link, the templates, the headers and the relay of its profile") {
  ProfileRig rig;
  rig.connection->run("SELECT mailroom_create_action('magic_link', path => '/magic', template => 'receipt')");
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['ada@mail.example'], action => 'magic_link', profile => 'acme'), "
      "mailroom_send(ARRAY['bob@mail.example'], subject => 'Hello', text => 'Hello', sender => 'Bob <bob@acme.example>', "
      "profile => 'acme'), "
      "mailroom_send(ARRAY['cy@mail.example'], subject => 'Hello', text => 'Hello')");
  rig.send_once();
  CHECK(recipients_of(rig.main) == std::multiset<std::string>{"cy@mail.example"});
  REQUIRE(recipients_of(rig.acme) == std::multiset<std::string>{"ada@mail.example", "bob@mail.example"});
  for (const auto& mail : rig.acme.taken()) {
    const bool is_bob = mail.to == "bob@mail.example";
    CHECK(has(mail.message, "X-Brand: acme"));
    CHECK(has(mail.message, "Reply-To: help@acme.example"));
    CHECK(has(mail.message, is_bob ? "From: Bob <bob@acme.example>" : "From: Acme <hello@acme.example>"));
    if (is_bob) continue;
    CHECK(has(mail.message, "Subject: Acme says thank you"));
    CHECK(has(mail.message, "https://acme.example/"));
  }
  CHECK(has(rig.main.taken().front().message, "From: Example <no-reply@app.example>"));
  CHECK_FALSE(has(rig.main.taken().front().message, "X-Brand"));
  const auto sinks = value<std::string>(
      *rig.connection,
      "SELECT string_agg(DISTINCT regexp_replace(sink, '[0-9]+', 'N', 'g'), ', ') FROM mailroom_deliveries");
  CHECK(sinks == "N.N.N.N:N, N.N.N.N:N (acme)");
}

TEST_CASE("a relay that is down stops the mails of its own profile only") {
  std::atomic<bool> is_down = true;
  ProfileRig rig([&](const RelayMoment& moment) {
    return is_down && moment.step == RelayStep::greeting
               ? RelayAnswer::reply("421 down", RelayAnswer::Then::close)
               : RelayAnswer{};
  });
  rig.ask("a", 30, "acme");
  rig.ask("b", 30, "default");
  TestSender sender(rig.database.conninfo(), rig.main.url(), {}, rig.environment());
  CHECK(eventually([&] { return rig.accepted("b") == 30; }));
  CHECK(rig.accepted("a") == 0);
  CHECK(rig.count("deferred") == 30);
  rig.ask("c", 10, "default");
  CHECK(eventually([&] { return rig.accepted("c") == 10; }));
  is_down = false;
  CHECK(eventually([&] { return rig.accepted("a") == 30; }, std::chrono::seconds(60)));
  CHECK(sender.stop() == 0);
  INFO(sender.log());
  // No attempt was counted against a mail.
  CHECK(value<int>(*rig.connection, "SELECT max(attempts) FROM mailroom_deliveries") == 1);
  CHECK(rig.acme.taken().size() == 30);
  CHECK(rig.main.taken().size() == 40);
}

TEST_CASE("a relay that answers late delays no mail of another profile, and each goes out once") {
  std::atomic<bool> is_slow = true;
  ProfileRig rig([&](const RelayMoment& moment) {
    RelayAnswer answer;
    if (is_slow && moment.step == RelayStep::end) answer.delay = Milliseconds(8000);
    return answer;
  });
  rig.ask("a", 12, "acme");
  rig.ask("b", 40, "default");
  TestSender sender(rig.database.conninfo(), rig.main.url(), {}, rig.environment());
  CHECK(eventually([&] { return rig.accepted("b") == 40; }));
  // None of them can have been answered before the first of these was sent; those under way have no answer
  // yet.
  CHECK(rig.accepted("a") == 0);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE state = 'deferred' AND unknowns = 1") > 0);
  is_slow = false;
  CHECK(eventually([&] { return rig.accepted("a") == 12; }, std::chrono::seconds(60)));
  CHECK(sender.stop() == 0);
  INFO(sender.log());
  CHECK(rig.acme.taken().size() == 12);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE unknowns > 0 OR attempts <> 1") == 0);
}

TEST_CASE("a sender that stops waits for late answers, and reports them") {
  ProfileRig rig([&](const RelayMoment& moment) {
    RelayAnswer answer;
    if (moment.step == RelayStep::end) answer.delay = Milliseconds(2000);
    return answer;
  });
  rig.ask("a", 4, "acme");
  rig.ask("b", 4, "default");
  rig.send_once();
  CHECK(rig.accepted("a") + rig.accepted("b") == 8);
  CHECK(rig.acme.taken().size() == 4);
}

TEST_CASE(
    "a sender that is killed while mails have no answer loses none, and counts them as maybe accepted") {
  std::atomic<bool> is_slow = true;
  ProfileRig rig([&](const RelayMoment& moment) {
    RelayAnswer answer;
    if (is_slow && moment.step == RelayStep::end) answer.delay = Milliseconds(30'000);
    return answer;
  });
  rig.ask("a", 4, "acme");
  rig.ask("b", 10, "default");
  {
    TestSender sender(rig.database.conninfo(), rig.main.url(), {}, rig.environment());
    CHECK(eventually([&] {
      return rig.accepted("b") == 10 &&
             value<int>(
                 *rig.connection,
                 "SELECT count(*) FROM mailroom_deliveries WHERE state = 'deferred' AND unknowns = 1") > 0;
    }));
    sender.process().signal(SIGKILL);
    sender.process().wait();
  }
  is_slow = false;
  rig.due_now();
  const bool holds = GENERATE(false, true);
  const auto maybe =
      value<int>(*rig.connection, "SELECT count(*) FROM mailroom_deliveries WHERE unknowns = 1");
  auto environment = rig.environment();
  if (holds) environment["MAILROOM_SEND_WHEN_UNKNOWN"] = "hold";
  TestSender next(rig.database.conninfo(), rig.main.url(), {"--once"}, environment);
  next.wait();
  INFO(next.log());
  CHECK(rig.count("unknown") == (holds ? maybe : 0));
  CHECK(rig.accepted("a") == (holds ? 4 - maybe : 4));
}

TEST_CASE("a profile goes no faster than its rate, and keeps others from nothing") {
  ProfileRig rig;
  rig.ask("a", 40, "acme");
  rig.ask("b", 40, "default");
  TestSender sender(rig.database.conninfo(), rig.main.url(), {}, rig.environment("    rate: 2/s\n"));
  CHECK(eventually([&] { return rig.accepted("b") == 40; }));
  CHECK(rig.accepted("a") < 40);
  CHECK(sender.stop() == 0);
  INFO(sender.log());
}

TEST_CASE(
    "a message of a profile that is not configured waits, status says so, and it goes out after a reload") {
  ProfileRig rig;
  rig.ask("a", 2, "brand");
  rig.ask("b", 1, "default");
  auto environment = rig.environment();
  TestSender sender(rig.database.conninfo(), rig.main.url(), {}, environment);
  CHECK(eventually([&] { return rig.accepted("b") == 1 && rig.count("deferred") == 2; }));
  rig.environment("  brand:\n    from: Brand <b@brand.example>\n");
  sender.process().signal(SIGHUP);
  CHECK(eventually([&] { return count(sender.log(), "configuration reloaded") == 1; }));
  CHECK(has(sender.log(), "profiles.brand.from"));
  rig.due_now();
  CHECK(eventually([&] { return rig.accepted("a") == 2; }));
  CHECK(sender.stop() == 0);
  INFO(sender.log());
}

TEST_CASE(
    "profiles take turns: one mail does not wait for 600 of another, nor a hundred, and each is mailed once") {
  DeliveryRig rig(0);
  TemporaryDirectory directory;
  TestRelay relay;
  const auto ask = [&](const std::string& profile, int count) {
    rig.connection->run(
        "INSERT INTO mailroom_messages (recipients, subject, text, profile) SELECT ARRAY[$1 || i || '@mail.example'], 's', 't', "
        "nullif($1, 'none') FROM generate_series(1, $2) i",
        profile, count);
  };
  ask("a", 600);
  ask("b", 100);
  ask("none", 1);
  ask("c", 1);
  const auto config = directory.write(
      "mailroom.yaml",
      "send:\n  batch_limit: 20\nprofiles:\n  a: {headers: ['X-P: a']}\n  b: {headers: ['X-P: b']}\n"
      "  c: {headers: ['X-P: c']}\n");
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"}, {{"MAILROOM_CONFIG", config}});
  CHECK(sender.wait() == 0);
  INFO(sender.log());
  const auto mails = relay.taken();
  REQUIRE(mails.size() == 702);
  CHECK(recipients_of(relay).count("a1@mail.example") == 1);
  const auto all = recipients_of(relay);
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == 702);
  std::map<char, std::size_t> last;
  for (std::size_t i = 0; i < mails.size(); ++i)
    last[mails[i].to.front()] = i;
  // Two batches may have been claimed before a mail is seen.
  CHECK(last['c'] < 100);
  CHECK(last['n'] < 100);
  CHECK(last['b'] < 400);
  CHECK(rig.count("accepted") == 702);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_gaps") == 0);
}

}  // namespace mailroom::test::profile_test
