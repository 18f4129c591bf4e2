// send.redirect_to and send.allow: who gets the mails of a staging system, and what is on record.

#include <map>
#include <set>

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::staging_test {
namespace {

using Variables = std::map<std::string, std::string>;

/// Sends once what is due; returns the log.
std::string send_once(DeliveryRig& rig, const TestRelay& relay, const Variables& variables) {
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"}, variables);
  CHECK(sender.wait() == 0);
  return sender.log();
}

/// Whom a mail says that it is for; empty if it is for who gets it.
std::string named_recipient(const std::string& message) {
  const std::string name = "\r\nX-Mailroom-Recipient: ";
  const auto at = message.find(name);
  if (at == std::string::npos) return {};
  const auto begin = at + name.size();
  return message.substr(begin, message.find("\r\n", begin) - begin);
}

/// `recipient of the envelope < whom the header names`, for each mail.
std::multiset<std::string> taken(const TestRelay& relay) {
  std::multiset<std::string> all;
  for (const auto& mail : relay.taken())
    all.insert(mail.to + " < " + named_recipient(mail.message));
  return all;
}

}  // namespace

TEST_CASE("every mail of a staging system goes to one address, which reads whose it was") {
  DeliveryRig rig(1);
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['Ada <ada@x.example>', 'qa@app.example'], bcc => ARRAY['eve@x.example'], "
      "subject => 'Hello', text => 'x')");
  TestRelay relay;
  const auto log = send_once(rig, relay,
                             {{"MAILROOM_SEND_REDIRECT_TO", "dev@app.example"},
                              {"MAILROOM_SEND_ALLOW", "qa@app.example,@other.example"}});
  CHECK(taken(relay) == std::multiset<std::string>{"dev@app.example < user1@test.example",
                                                   "dev@app.example < ada@x.example", "qa@app.example < ",
                                                   "dev@app.example < eve@x.example"});
  CHECK(log.find("mails go to send.redirect_to instead of their recipients to=dev@app.example "
                 "allow=qa@app.example,@other.example") != std::string::npos);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT string_agg(address, ' ' ORDER BY token) FROM mailroom_deliveries "
                           "WHERE state = 'accepted'") ==
        "dev@app.example dev@app.example qa@app.example dev@app.example");
}

TEST_CASE("with send.allow alone all other mails are cancelled, and say why") {
  DeliveryRig rig(2);
  rig.connection->run("UPDATE accounts SET email = 'qa@app.example' WHERE id = 2");
  TestRelay relay;
  send_once(rig, relay, {{"MAILROOM_SEND_ALLOW", "@app.example"}});
  CHECK(taken(relay) == std::multiset<std::string>{"qa@app.example < "});
  CHECK(value<std::string>(*rig.connection,
                           "SELECT reply FROM mailroom_deliveries WHERE state = 'cancelled'") ==
        "send.allow does not have the address");
}

TEST_CASE("no application can say for whom a redirected mail is") {
  DeliveryRig rig(0);
  CHECK_THROWS_WITH(
      rig.connection->run("SELECT mailroom_send(ARRAY['ada@x.example'], subject => 's', text => 't', "
                          "headers => '{\"X-Mailroom-Recipient\": \"bo@x.example\"}')"),
      Catch::Matchers::ContainsSubstring("is written by mailroom"));
}

}  // namespace mailroom::test::staging_test
