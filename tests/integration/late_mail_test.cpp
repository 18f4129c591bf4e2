// Mail that does not reach people in time is a problem of its queue: deferred, expired, or about to expire.

#include "health/queue_health.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"

namespace mailroom::test::late_mail_test {
namespace {

struct LateRig : DeliveryRig {
  explicit LateRig(int accounts) : DeliveryRig(accounts) {}

  status::QueueStatus status() { return status::read_queue_status(*connection, "mailroom"); }
  /// `failure code` of each problem.
  std::vector<std::string> problems(const health::HealthLimits& limits = {}) {
    std::vector<std::string> all;
    for (const auto& finding : health::judge_queue(status(), limits))
      all.push_back(std::string(health::severity_name(finding.severity)) + " " + finding.code);
    return all;
  }
  /// Emits every token, and defers all of them by an answer.
  void defer_all(const std::string& ago) {
    drain(*session);
    connection->run(
        "INSERT INTO mailroom_deliveries (queue, token, state, attempts, not_before, batch, first_at, last_at, code, reply) "
        "SELECT 'mailroom', id, 'deferred', 1, now() + interval '1 min', 1, now() - $1::interval, now(), 450, 'later' "
        "FROM tokens",
        ago);
  }

  std::unique_ptr<claim::PgQueueSession> session = attach(database);
};

using Problems = std::vector<std::string>;

}  // namespace

TEST_CASE("ages count deferred tokens, but none that is consumed or expired") {
  LateRig rig(3);
  rig.connection->run("UPDATE tokens SET created_at = created_at - 100 * id");
  rig.defer_all("37 s");
  CHECK(rig.status().pending.total() == 3);
  const auto lag = [&] { return rig.status().lag().value_or(Milliseconds(-1)); };
  CHECK(lag() >= std::chrono::seconds(300));
  CHECK(lag() < std::chrono::seconds(400));
  CHECK(status::read_pending_tokens(*rig.connection, "mailroom").oldest_created_at);
  health::HealthLimits limits;
  limits.max_lag = std::chrono::seconds(5);
  CHECK(rig.problems(limits) == Problems{"failure max_lag", "warning only_refusals"});
  rig.connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 3");
  CHECK(lag() < std::chrono::seconds(300));
  rig.connection->run("UPDATE tokens SET expires_at = 1 WHERE id < 3");
  CHECK_FALSE(rig.status().lag());
}

TEST_CASE(
    "mails that cannot be made for one reason are a failure, and those that were revoked did not expire unsent") {
  LateRig rig(4);
  rig.connection->run("UPDATE tokens SET created_at = 0, expires_at = 1");
  const auto record = [&](const std::string& values, int count) {
    rig.connection->run(
        "INSERT INTO mailroom_deliveries (queue, token, batch, state, sink, reply) SELECT 'mailroom', id, 1, " +
        values + " FROM tokens ORDER BY id LIMIT " + std::to_string(count));
  };
  record("'rejected', NULL, 'receipt.txt:1: neither the data nor mailroom has {{totl}}'", 2);
  CHECK(rig.problems() == Problems{"warning mails_not_made"});
  rig.connection->run("DELETE FROM mailroom_deliveries");
  record("'rejected', NULL, 'receipt.txt:1: neither the data nor mailroom has {{totl}}'", 3);
  CHECK(rig.problems() == Problems{"failure mails_not_made"});
  rig.connection->run("UPDATE mailroom_deliveries SET last_at = last_at - interval '11 min'");
  CHECK(rig.problems() == Problems{"warning mails_not_made"});
  rig.connection->run("DELETE FROM mailroom_deliveries");
  record("'expired', NULL, 'the token has expired'", 3);
  CHECK(rig.problems() == Problems{"failure expired_unsent"});
  rig.connection->run(
      "INSERT INTO mailroom_operations (kind, actor, details) VALUES ('revoke', 'x', jsonb_build_object('ids', '{[1,100]}'))");
  CHECK(rig.problems().empty());
}

TEST_CASE("a relay that defers everything is a failure within a minute, until it accepts a mail") {
  LateRig rig(5);
  rig.defer_all("59 s");
  CHECK(rig.problems() == Problems{"warning only_refusals"});
  rig.connection->run("UPDATE mailroom_deliveries SET first_at = first_at - interval '2 s'");
  CHECK(rig.problems() == Problems{"failure only_refusals"});
  rig.connection->run(
      "UPDATE mailroom_deliveries SET state = 'accepted', accepted_at = now(), last_at = now(), not_before = NULL "
      "WHERE token = 1");
  CHECK(rig.problems().empty());
}

TEST_CASE("tokens that expire before their claim are a failure, claimed or not, until ten minutes later") {
  LateRig rig(4);
  rig.connection->run("UPDATE tokens SET expires_at = extract(epoch FROM now())::bigint - 5 WHERE id <= 3");
  CHECK(rig.problems() == Problems{"failure expired_unsent"});
  CHECK(rig.status().expired.tokens == 3);
  CHECK(drain(*rig.session) == Ids{4});
  CHECK(rig.status().expired.tokens == 3);
  CHECK(rig.problems() == Problems{"failure expired_unsent"});
  const auto pass = [&](const std::string& time) {
    rig.connection->run("UPDATE mailroom_batches SET emitted_at = emitted_at - $1::interval", time);
  };
  pass("11 min");
  CHECK(rig.problems() == Problems{"warning expired_unsent"});
  pass("1 h");
  CHECK(rig.problems().empty());
}

TEST_CASE("tokens that were emitted, and have expired when a rewind comes to them again, are no problem") {
  LateRig rig(4);
  CHECK(drain(*rig.session).size() == 4);
  rig.connection->run("UPDATE tokens SET expires_at = extract(epoch FROM now())::bigint - 5");
  rig.connection->run("SELECT mailroom_rewind('mailroom', 0, 1000, '{}')");
  CHECK(rig.problems().empty());
  CHECK(drain(*rig.session).empty());
  CHECK(value<int>(*rig.connection, "SELECT sum(skipped_expired) FROM mailroom_batches") == 4);
  CHECK(rig.problems().empty());
}

TEST_CASE(
    "mails that are given up because their tokens expire are a failure, but not one that was accepted once") {
  LateRig rig(3);
  rig.defer_all("20 min");
  rig.connection->run("UPDATE mailroom_deliveries SET state = 'expired', not_before = NULL");
  rig.connection->run("UPDATE mailroom_deliveries SET accepted_at = now() WHERE token = 1");
  CHECK(rig.status().expired.tokens == 2);
  CHECK(rig.problems() == Problems{"failure expired_unsent"});
}

TEST_CASE("many accounts in a row with the wrong status are a problem of lines as of mails") {
  LateRig rig(12);
  rig.connection->run("UPDATE accounts SET status = 'suspended'");
  const auto batches = [&] { return value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches"); };
  CHECK(drain(*rig.session, 5).empty());
  CHECK(batches() == 3);
  CHECK(rig.problems() == Problems{"warning accounts_unfit"});
  rig.connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '2 min'");
  CHECK(rig.problems() == Problems{"failure accounts_unfit"});
  rig.connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '1 h'");
  CHECK(rig.problems().empty());
  rig.connection->run("UPDATE mailroom_batches SET claimed_at = now()");
  CHECK(rig.problems() == Problems{"warning accounts_unfit"});
  insert_accounts(*rig.connection, 1, "more");
  CHECK(drain(*rig.session) == Ids{13});
  CHECK(rig.problems().empty());
}

TEST_CASE("a rate that is too low for what waits is a failure before anything expires") {
  LateRig rig(40);
  set_rate(*rig.connection, "mailroom", 30, 1);
  CHECK(rig.problems() == Problems{"failure will_expire"});
  const auto life = value<int>(*rig.connection, "SELECT max(expires_at - created_at) FROM tokens");
  const auto expiring = health::forecast_expiring(rig.status()).value_or(-1);
  CHECK(expiring >= 40 - life / 30 - 3);
  CHECK(expiring <= 40 - life / 30);
  set_rate(*rig.connection, "mailroom", 1, 1);
  CHECK(rig.problems().empty());
}

TEST_CASE("many waiting tokens are forecast by samples") {
  LateRig rig(20'000);
  set_rate(*rig.connection, "mailroom", 10, 1);
  rig.connection->run(
      "UPDATE tokens SET expires_at = extract(epoch FROM now())::bigint - 5 WHERE id <= 6000");
  const auto status = rig.status();
  CHECK(status.pending.estimated);
  CHECK(status.expired.tokens > 5'000);
  CHECK(status.expired.tokens < 7'000);
  CHECK(health::forecast_expiring(status) > 13'000);
  CHECK(health::forecast_expiring(status) < 15'100);
}

}  // namespace mailroom::test::late_mail_test
