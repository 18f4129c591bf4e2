// An address that the relay refuses in the dialogue as one that does not exist, with send.suppress_refused.

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::refused_address_test {
namespace {

struct RefusedRig : DeliveryRig {
  RefusedRig() : DeliveryRig(0) {
    connection->run(
        "SELECT mailroom_send(ARRAY[a || '@x.example'], subject => 'Hello', text => 'x') FROM unnest('{good,gone,spam,full}'::text[]) a");
  }
  void send(const std::map<std::string, std::string>& environment) {
    const TestRelay relay({.play = [](const RelayMoment& moment) {
      if (moment.step != RelayStep::rcpt) return RelayAnswer{};
      if (moment.recipient == "gone@x.example") return RelayAnswer::reply("550 5.1.1 no such user here");
      if (moment.recipient == "spam@x.example") return RelayAnswer::reply("550 5.7.1 looks like spam");
      if (moment.recipient == "full@x.example") return RelayAnswer::reply("552 5.2.2 mailbox full");
      return RelayAnswer{};
    }});
    TestSender sender(database.conninfo(), relay.url(), {"--once"}, environment);
    sender.wait();
    asked = relay.commands();
  }
  std::string suppressed() {
    return value<std::string>(
        *connection,
        "SELECT coalesce(string_agg(concat_ws(' ', address, kind, reason, added_by), ', '), '') "
        "FROM mailroom_suppressions");
  }

  std::vector<std::string> asked{};
};

}  // namespace

TEST_CASE("an address that a relay refuses for good is suppressed, by a setting, and no other one") {
  RefusedRig rig;
  rig.send({{"MAILROOM_SEND_SUPPRESS_REFUSED", "true"}});
  CHECK(rig.count("rejected") == 3);
  CHECK(rig.suppressed() == "gone@x.example bounce user_unknown mailroom send");
  rig.connection->run("SELECT mailroom_send(ARRAY['gone@x.example'], subject => 'Again', text => 'x')");
  rig.send({{"MAILROOM_SEND_SUPPRESS_REFUSED", "true"}});
  CHECK(rig.asked.empty());
  CHECK(
      value<std::string>(*rig.connection, "SELECT reply FROM mailroom_deliveries ORDER BY token DESC LIMIT 1")
          .find("user_unknown") != std::string::npos);
}

TEST_CASE("without the setting an address that a relay refuses stays as it is") {
  RefusedRig rig;
  rig.send({});
  CHECK(rig.count("rejected") == 3);
  CHECK(rig.suppressed().empty());
}

}  // namespace mailroom::test::refused_address_test
