// What became of messages that were cancelled, replaced or scheduled: audit and reconcile have one word for
// it.

#include <fmt/format.h>
#include <future>

#include "support/history_play.hpp"
#include "support/reconcile_rig.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::messages_outcome_test {
namespace {

struct MessageRig : ReconcileRig {
  std::int64_t send(const std::string& more = {}) {
    return value<std::int64_t>(
        *connection,
        fmt::format("SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't'{})", more));
  }

  void cancel(std::int64_t message) { connection->run("SELECT mailroom_cancel($1)", message); }

  /// As audit has them: `cancelled, then waiting: replaced`.
  std::string audited(std::int64_t token) {
    const auto history = audit::read_token_history(*connection, token, {.queues = {"mailroom"}});
    const auto& status = history.tokens.front().status;
    std::string text = fate::outcome_name(status.outcome);
    if (status.next) text += fmt::format(", then {}", fate::outcome_name(*status.next));
    return status.reason.empty() ? text : text + ": " + status.reason;
  }
};

constexpr const char* replacing = ", idempotency_key => 'k', options => '{\"replace\": true}'";

}  // namespace

TEST_CASE("a token of a message that was cancelled or replaced is cancelled, not consumed by somebody") {
  MessageRig rig;
  rig.cancel(rig.send());
  rig.send(replacing);
  rig.send(std::string(replacing) + ", reference => 'r'");
  insert_accounts(*rig.connection, 1);
  rig.hand("UPDATE tokens SET consumed_at = created_at WHERE id = 4");

  CHECK(rig.classes() == "2 cancelled, 1 skipped, 1 waiting");
  CHECK(
      explanations_of(rig.result(), fate::Outcome::cancelled) ==
      "its message was cancelled before the queue came to it; its message was replaced before the queue came to it");
  CHECK(rig.audited(1) == "cancelled, then waiting: cancelled");
  CHECK(rig.audited(2) == "cancelled, then waiting: replaced");
  CHECK(rig.audited(4) == "skipped, then waiting: consumed");

  rig.drain(10);
  CHECK(rig.classes() == "1 emitted, 2 cancelled, 1 skipped");
  CHECK(rig.unexplained().empty());
  CHECK(explanations_of(rig.result(), fate::Outcome::cancelled) ==
        "its message was cancelled; its message was replaced");
  CHECK(rig.audited(1) == "cancelled: cancelled");
  CHECK(rig.audited(2) == "cancelled: replaced");
  CHECK(rig.audited(3) == "emitted");
}

TEST_CASE(
    "a message whose end waits for a claim into the next second is cancelled or replaced all the same") {
  MessageRig rig;
  const auto ended = rig.send();
  rig.send(replacing);
  const auto claim = rig.database.connect();
  claim->run("SELECT pg_advisory_lock(mailroom_lock_class('queue'), hashtext('mailroom'))");
  const auto in_background = [&](const std::string& sql) {
    return std::async(std::launch::async, [&rig, sql] { rig.database.connect()->run(sql); });
  };
  auto cancelling = in_background(fmt::format("SELECT mailroom_cancel({})", ended));
  auto resending = in_background(
      fmt::format("SELECT mailroom_send(ARRAY['b@x.example'], subject => 's', text => 't'{})", replacing));
  const bool both_wait =
      eventually([&] { return locks(*claim, "NOT granted AND locktype = 'advisory'") == 2; });
  const auto second = [&] {
    return value<std::int64_t>(*claim, "SELECT floor(extract(epoch FROM clock_timestamp()))");
  };
  const auto consumed = second();
  const bool is_next = eventually([&] { return second() > consumed; });
  claim->run("SELECT pg_advisory_unlock_all()");
  cancelling.get();
  resending.get();
  REQUIRE(both_wait);
  REQUIRE(is_next);
  CHECK(rig.classes() == "2 cancelled, 1 waiting");
  CHECK(rig.audited(1) == "cancelled, then waiting: cancelled");
  CHECK(rig.audited(2) == "cancelled, then waiting: replaced");
}

TEST_CASE(
    "a token that left, or that somebody consumed, before its message was cancelled keeps its outcome") {
  MessageRig rig;
  const auto left = rig.send();
  const auto used = rig.send();
  rig.hand(fmt::format("UPDATE tokens SET consumed_at = created_at - 5 WHERE message = {}", used));
  rig.drain(10);
  rig.cancel(left);
  rig.cancel(used);
  CHECK(rig.classes() == "1 emitted, 1 skipped");
  CHECK(rig.audited(1) == "emitted");
  CHECK(rig.audited(2) == "skipped: consumed");
}

TEST_CASE("a message that is cancelled while a consumer has it keeps what the consumer made of it") {
  MessageRig rig;
  const auto message = rig.send();
  const auto lease = rig.session->claim({.limit = 1, .partial = true}).lease;
  REQUIRE(lease);
  CHECK(value<std::string>(*rig.connection, fmt::format("SELECT mailroom_cancel({})", message)) == "sending");
  CHECK(rig.classes() == "1 leased");
  const auto fetched = fetch_due(*rig.session, *lease);
  rig.session->claim({.limit = 0, .receipt = claim::Receipt{*lease, fetched.counts}});
  CHECK(rig.classes() == "1 emitted");
  CHECK(rig.audited(1) == "emitted");
}

TEST_CASE("reconcile counts scheduled messages, which have no token") {
  MessageRig rig;
  const auto scheduled = [&] {
    return reconcile::reconcile(*rig.connection, {.queues = {"mailroom"}}).scheduled;
  };
  CHECK(scheduled().messages == 0);
  CHECK_FALSE(scheduled().next_at);
  rig.send(", send_after => now() + interval '1 hour'");
  rig.cancel(rig.send(", send_after => now() + interval '1 minute'"));
  const auto found = scheduled();
  CHECK(found.messages == 1);
  CHECK_FALSE(found.estimated);
  CHECK(*found.next_at > rig.connection->server_time() + std::chrono::minutes(59));
  CHECK(rig.classes().empty());
}

TEST_CASE("the list of reconcile has the reference of a message") {
  MessageRig rig;
  const auto message = rig.send(", reference => 'order:17'");
  rig.cancel(message);
  std::vector<reconcile::TokenOfPerson> found;
  const selection::Selection selection{.outcomes = {fate::Outcome::cancelled}};
  reconcile::reconcile(*rig.connection, {.queues = {"mailroom"},
                                         .listed = &selection,
                                         .on_people = [&](const auto& people) { found = people; }});
  REQUIRE(found.size() == 1);
  CHECK(found.front().address == "a@x.example");
  CHECK(found.front().message == message);
  CHECK(found.front().reference == "order:17");
}

}  // namespace mailroom::test::messages_outcome_test
