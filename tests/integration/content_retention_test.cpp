// The content of messages goes once they can be sent no more, and the record of them stays.

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/prune_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::content_retention_test {
namespace {

struct RetentionRig : DeliveryRig {
  TestRelay relay;

  RetentionRig() : DeliveryRig(0) {}

  void ask(const std::string& more = {}) {
    connection->run(fmt::format(
        "SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'Hello', text => 'a', attachments => "
        "'[{{\"name\": \"a\", \"content\": \"YQ==\"}}]' {})",
        more));
  }
  void send() {
    TestSender sender(database.conninfo(), relay.url(), {"--once"});
    CHECK(sender.wait() == 0);
    INFO(sender.log());
  }
  /// Moves everything that has happened back by `days`.
  void age(int days) {
    connection->run(fmt::format(
        "UPDATE mailroom_messages SET created_at = created_at - interval '{0} days', cancelled_at = cancelled_at - interval '{0} days'; "
        "UPDATE mailroom_deliveries SET first_at = first_at - interval '{0} days', last_at = last_at - interval '{0} days'",
        days));
  }
  /// How many messages lose their content that ended a week ago.
  std::int64_t erase() {
    return prune::Pruner(*database.connect(), {.records = month, .contents = std::chrono::hours(24 * 7)}, 10)
        .remove(author, always)
        .contents;
  }
  /// `1 content 1 file`, for each message.
  std::string contents() {
    return value<std::string>(
        *connection,
        "SELECT string_agg(m.id || CASE WHEN num_nonnulls(text, data) = 0 THEN ' none' ELSE ' content' END || ' ' || (SELECT "
        "count(*) FROM mailroom_attachments f WHERE f.message = m.id), ', ' ORDER BY m.id) FROM mailroom_messages m");
  }
};

}  // namespace

TEST_CASE("the content of a mail goes a week after its outcome, and what was delivered stays") {
  RetentionRig rig;
  rig.ask();
  rig.send();
  rig.age(6);
  CHECK(rig.erase() == 0);
  rig.age(2);
  CHECK(rig.erase() == 1);
  CHECK(rig.contents() == "1 none 0");
  CHECK(value<std::string>(*rig.connection,
                           "SELECT recipients[1] FROM mailroom_messages WHERE erased_at IS NOT NULL") ==
        "ada@mail.example");
  CHECK(rig.deliveries() == "1 accepted 1");
  CHECK(rig.erase() == 0);
}

TEST_CASE("what can still be sent keeps its content: scheduled, waiting, deferred, with a link that lives") {
  RetentionRig rig;
  rig.connection->run(
      "SELECT mailroom_create_action('magic_link', path => '/magic', lifetime => '100 days')");
  rig.ask(", send_after => now() + interval '90 days'");
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['ada@mail.example'], action => 'magic_link', template => 'activation', data => '{\"a\": 1}')");
  rig.send();
  rig.ask(", expires_at => 'infinity'");
  rig.age(8);
  CHECK(rig.erase() == 0);
  CHECK(rig.contents() == "1 content 1, 2 content 0, 3 content 1");
  rig.connection->run(
      "UPDATE tokens SET expires_at = extract(epoch FROM now()) - 86400 * 8 WHERE message = 2");
  CHECK(rig.erase() == 1);
  CHECK(rig.contents() == "1 content 1, 2 none 0, 3 content 1");
}

TEST_CASE("a rewind asks for no mail whose content is gone") {
  RetentionRig rig;
  rig.ask(", expires_at => 'infinity'");
  rig.ask();
  rig.send();
  rig.age(8);
  CHECK(rig.erase() == 2);
  rig.connection->run("SELECT mailroom_rewind('mailroom', 0, 1000, '{}')");
  rig.send();
  CHECK(rig.relay.taken().size() == 2);
}

TEST_CASE("the content of what was cancelled or replaced before its time goes too") {
  RetentionRig rig;
  rig.ask(", send_after => now() + interval '1 day'");
  rig.connection->run("SELECT mailroom_cancel(1)");
  rig.age(8);
  CHECK(rig.erase() == 1);
  CHECK(rig.contents() == "1 none 0");
}

}  // namespace mailroom::test::content_retention_test
