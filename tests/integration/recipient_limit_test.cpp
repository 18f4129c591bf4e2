// send.per_recipient: how many mails an address gets, whatever asked for them, and what is said of the
// others.

#include <atomic>
#include <set>

#include "claim/recipient_counts.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::recipient_limit_test {
namespace {

const std::string reason = "the address has had 3 mails, and send.per_recipient is 3/h";

/// Sends once what is due, with the limit; returns the log.
std::string send_once(DeliveryRig& rig, const TestRelay& relay, const std::string& limit = "3/1h",
                      const std::vector<std::string>& options = {}) {
  std::vector<std::string> all{"--once"};
  all.insert(all.end(), options.begin(), options.end());
  TestSender sender(rig.database.conninfo(), relay.url(), all,
                    {{"MAILROOM_SEND_PER_RECIPIENT", limit}, {"MAILROOM_SEND_SUPERSEDE", "false"}});
  CHECK(sender.wait() == 0);
  return sender.log();
}

void ask_for_mail(DeliveryRig& rig, const std::string& recipients, int messages = 1) {
  rig.connection->run(
      "SELECT mailroom_send($1::text[], subject => 'Hello', text => 'Ada') FROM generate_series(1, $2::int)",
      recipients, messages);
}

std::multiset<std::string> recipients_of(const TestRelay& relay) {
  std::multiset<std::string> all;
  for (const auto& mail : relay.taken())
    all.insert(mail.to);
  return all;
}

}  // namespace

TEST_CASE("of 100 messages to an address in one batch those pass that send.per_recipient allows") {
  DeliveryRig rig(0);
  ask_for_mail(rig, "{ada@mail.example}", 100);
  ask_for_mail(rig, "{bob@mail.example}");
  TestRelay relay;
  const auto log = send_once(rig, relay, "3/1h", {"--batch-limit", "200"});
  CHECK(recipients_of(relay) == std::multiset<std::string>{"ada@mail.example", "ada@mail.example",
                                                           "ada@mail.example", "bob@mail.example"});
  CHECK(rig.count("cancelled") == 97);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE state = 'cancelled' AND reply = '" +
                       reason + "'") == 97);
  CHECK(log.find("send.per_recipient is 3/h") != std::string::npos);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT state || ': ' || reply FROM mailroom_message_status(100)") ==
        "cancelled: " + reason);
}

TEST_CASE("an address is counted over batches, senders, actions and recipients of messages, in any case") {
  DeliveryRig rig(1);
  rig.connection->run("UPDATE accounts SET email = 'Ada@Mail.example', status = 'active'");
  rig.connection->run("UPDATE tokens SET consumed_at = 1");
  rig.connection->run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
  TestRelay relay;
  send_once(rig, relay);
  // Neither the first recipient nor in to.
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['bob@mail.example'], cc => ARRAY['Ada <ada@MAIL.example>'], "
      "subject => 'Hello', text => 'Ada')");
  send_once(rig, relay, "3/1h", {"--batch-limit", "1"});
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['bob@mail.example'], bcc => ARRAY['ADA@mail.example'], subject => 'Hello', "
      "text => 'Ada')");
  send_once(rig, relay);
  CHECK(relay.taken().size() == 5);
  rig.connection->run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
  ask_for_mail(rig, "{ada@mail.example}");
  send_once(rig, relay);
  CHECK(relay.taken().size() == 5);
  CHECK(rig.count("cancelled") == 2);
}

TEST_CASE("mails that are older than the period of send.per_recipient, or of another queue, do not count") {
  DeliveryRig rig(0);
  ask_for_mail(rig, "{ada@mail.example}", 3);
  TestRelay relay;
  send_once(rig, relay);
  rig.connection->run(
      "UPDATE mailroom_deliveries SET accepted_at = accepted_at - interval '61 min' WHERE token = 1");
  ask_for_mail(rig, "{ada@mail.example}", 2);
  send_once(rig, relay);
  CHECK(relay.taken().size() == 4);
  rig.connection->run("UPDATE mailroom_deliveries SET queue = 'another' WHERE state = 'accepted'");
  ask_for_mail(rig, "{ada@mail.example}");
  send_once(rig, relay);
  CHECK(relay.taken().size() == 5);
}

TEST_CASE("an international domain is counted as it is mailed") {
  DeliveryRig rig(0);
  ask_for_mail(rig, "{ada@bücher.example}", 3);
  TestRelay relay;
  send_once(rig, relay);
  CHECK(recipients_of(relay).count("ada@xn--bcher-kva.example") == 3);
  ask_for_mail(rig, "{ada@Bücher.example}");
  ask_for_mail(rig, "{ada@xn--bcher-kva.example}");
  send_once(rig, relay);
  CHECK(relay.taken().size() == 3);
  CHECK(rig.count("cancelled") == 2);
}

TEST_CASE("what a relay rejected counts for no address, and what it may have accepted does") {
  DeliveryRig rig(0);
  ask_for_mail(rig, "{ada@mail.example}", 3);
  std::atomic<int> mails = 0;
  TestRelay relay({.play = [&](const RelayMoment& moment) -> RelayAnswer {
    if (moment.step == RelayStep::rcpt && ++mails == 1) return RelayAnswer::reply("550 5.1.1 No such user");
    if (moment.step == RelayStep::end && mails == 2) return RelayAnswer::nothing(RelayAnswer::Then::close);
    return {};
  }});
  send_once(rig, relay, "3/1h", {"--batch-limit", "1"});
  CHECK(rig.count("rejected") == 1);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_deliveries WHERE unknowns = 1") == 1);
  CHECK(rig.count("accepted") == 1);
  ask_for_mail(rig, "{ada@mail.example}", 2);
  send_once(rig, relay, "3/1h", {"--batch-limit", "1"});
  CHECK(rig.count("accepted") == 2);
  CHECK(rig.count("cancelled") == 1);
  // An operator who has it sent again takes the doubt back, and it stays counted.
  CHECK(value<int>(*rig.connection, "SELECT mailroom_replay('mailroom', ARRAY[2]::bigint[], '{}')") == 1);
  rig.connection->run("SELECT mailroom_rewind('mailroom', 1, 100, '{}')");
  CHECK(value<std::string>(*rig.connection,
                           "SELECT unknowns || ' ' || counted_as FROM mailroom_deliveries WHERE token = 2") ==
        "0 ada@mail.example");
}

TEST_CASE("send --dry-run shows which mails send.per_recipient cancels") {
  DeliveryRig rig(0);
  ask_for_mail(rig, "{ada@mail.example}", 2);
  TestRelay relay;
  send_once(rig, relay);
  ask_for_mail(rig, "{Ada@mail.example}", 2);
  TestSender sender(rig.database.conninfo(), relay.url(), {"--dry-run"},
                    {{"MAILROOM_SEND_PER_RECIPIENT", "3/1h"}});
  CHECK(sender.wait() == 0);
  INFO(sender.output());
  CHECK(sender.output().find("(cancelled: the address has had 3 mails,") != std::string::npos);
  CHECK(sender.output().find("1 token would be mailed; 1 would not") != std::string::npos);
}

TEST_CASE("the mails to an address are found by an index among many, and no more than the limit are read") {
  DeliveryRig rig(0);
  auto& connection = *rig.connection;
  // Half of them to one address.
  connection.run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch, accepted_at, counted_as) "
      "SELECT 'mailroom', n, 'accepted', 1, clock_timestamp(), CASE WHEN n % 2 = 0 THEN 'ops@shop.example' ELSE "
      "'u' || n || '@mail.example' END FROM generate_series(1, 100000) n");
  connection.run("SET enable_seqscan = off");
  connection.run("SET plan_cache_mode = force_generic_plan");
  const auto pages = [&] {
    return value<std::int64_t>(connection,
                               "SELECT idx_blks_read + idx_blks_hit + heap_blks_read + heap_blks_hit "
                               "FROM pg_statio_user_tables WHERE relname = 'mailroom_deliveries'");
  };
  std::vector<claim::TokenRow> tokens(100);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i].id = 200'000 + static_cast<std::int64_t>(i);
    tokens[i].email = i < 50 ? "Ops@shop.example" : "u77777@mail.example";
  }
  connection.run("SELECT pg_stat_force_next_flush()");
  const auto before = pages();
  claim::RecipientCounts counts;
  counts.read(connection, "mailroom", {.count = 20, .period = std::chrono::hours(1)}, tokens);
  connection.run("SELECT pg_stat_force_next_flush()");
  const auto read = pages() - before;
  INFO(read);
  CHECK(read > 0);
  CHECK(read < 100 * 30);
  for (auto& token : tokens)
    counts.set(token);
  CHECK(tokens.front().mailed == 20);
  CHECK(tokens.front().counted_as == "ops@shop.example");
  CHECK(tokens.back().mailed == 1);
}

TEST_CASE("without send.per_recipient no delivery is counted, and its index stays empty") {
  DeliveryRig rig(0);
  ask_for_mail(rig, "{ada@mail.example}", 3);
  TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(sender.wait() == 0);
  CHECK(rig.count("accepted") == 3);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE counted_as IS NOT NULL") == 0);
}

}  // namespace mailroom::test::recipient_limit_test
