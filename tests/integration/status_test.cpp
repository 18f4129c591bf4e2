// Each state of a queue that status has to report, created for real: what status reads, which session it
// blames, and that the printed fix works.

#include <csignal>

#include "base/actor.hpp"
#include "health/queue_health.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::status_test {
namespace {

struct Queue : DatabaseRig {
  status::QueueStatus status(const std::string& queue = "mailroom") {
    return status::read_queue_status(*connection, queue);
  }
  std::vector<health::QueueFinding> findings(const health::HealthLimits& limits = {}) {
    return health::judge_queue(status(), limits);
  }

  /// The finding with this code; fails the test if there is none.
  health::QueueFinding finding(const std::string& code, const health::HealthLimits& limits = {}) {
    for (const auto& found : findings(limits)) {
      if (found.code == code) return found;
    }
    FAIL("no finding " << code);
    return {};
  }

  bool has(const std::string& code, const health::HealthLimits& limits = {}) {
    const auto all = findings(limits);
    return std::any_of(all.begin(), all.end(),
                       [&](const health::QueueFinding& found) { return found.code == code; });
  }
};

/// Claims up to `limit` tokens without acknowledging them.
claim::Lease take(claim::QueueSession& session, int limit = 10) {
  const auto reply = session.claim({.limit = limit, .partial = true});
  REQUIRE(reply.lease);
  return *reply.lease;
}

std::optional<status::GapHolder> holder_of(const status::QueueStatus& status, int pid) {
  for (const auto& holder : status.gap_holders) {
    if (holder.session.pid == pid) return holder;
  }
  return std::nullopt;
}

std::string app_of(const std::string& purpose) {
  return purpose + " ";
}

health::HealthLimits impatient() {
  health::HealthLimits limits;
  limits.transaction_open = Milliseconds{0};
  limits.batch_open = Milliseconds{0};
  limits.lock_held = Milliseconds{0};
  return limits;
}

}  // namespace

TEST_CASE("status counts scheduled messages, and finds who must release them") {
  Queue queue;
  auto& connection = *queue.connection;
  CHECK(queue.status().scheduled.messages == 0);
  for (const auto* time : {"1 hour", "2 hours"})
    connection.run(
        "SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't', send_after => now() + $1::interval)",
        time);
  auto scheduled = queue.status().scheduled;
  CHECK(scheduled.messages == 2);
  CHECK(scheduled.overdue(queue.status().now) == Milliseconds{0});
  CHECK_FALSE(queue.has("schedule_overdue"));

  // As if 90 minutes had gone by.
  connection.run("ALTER TABLE mailroom_messages DISABLE TRIGGER before_message_rescheduled");
  connection.run("UPDATE mailroom_messages SET send_after = send_after - interval '90 minutes'");
  connection.run("UPDATE mailroom_schedule SET send_after = send_after - interval '90 minutes'");
  connection.run("ALTER TABLE mailroom_messages ENABLE TRIGGER before_message_rescheduled");
  CHECK(queue.status().scheduled.overdue(queue.status().now) > std::chrono::minutes(29));
  CHECK(queue.finding("schedule_overdue").fix.empty());
  connection.run("SELECT mailroom_release(10)");
  CHECK(queue.status().scheduled.messages == 1);
  CHECK_FALSE(queue.has("schedule_overdue"));

  // Many are estimated.
  connection.run(
      "INSERT INTO mailroom_schedule SELECT now() + interval '1 day', g FROM generate_series(1, 20000) g");
  connection.run("ANALYZE mailroom_schedule");
  scheduled = queue.status().scheduled;
  CHECK(scheduled.estimated);
  CHECK(scheduled.messages == 20'001);
}

TEST_CASE("status of a queue with tokens and no collector") {
  Queue queue;
  CHECK(queue.status().pending.total() == 0);
  CHECK_FALSE(queue.status().lag());
  CHECK(queue.has("no_collector"));
  insert_accounts(*queue.connection, 5);
  queue.connection->run("UPDATE tokens SET created_at = created_at - 100 WHERE id = 2");
  queue.connection->run("UPDATE tokens SET created_at = created_at - 900, expires_at = 5 WHERE id = 3");
  const auto status = queue.status();
  CHECK(status.pending.total() == 4);
  CHECK(status.pending.waiting == 4);
  CHECK_FALSE(status.pending.estimated);
  CHECK(status.newest == 5);
  CHECK(status.cursor == 0);
  CHECK(*status.lag() >= Milliseconds{99'000});
  CHECK(*status.lag() < Milliseconds{800'000});
  CHECK(queue.finding("no_collector").severity == health::Severity::failure);
}

TEST_CASE("tokens that expired unsent are no news once they were sent again") {
  Queue queue;
  auto& connection = *queue.connection;
  insert_accounts(connection, 3);
  connection.run("UPDATE tokens SET created_at = created_at - 259200, expires_at = created_at - 258300");
  CHECK(drain(*attach(queue.database)).empty());
  auto expired = queue.status().expired;
  CHECK(expired.tokens == 3);
  CHECK(expired.oldest > std::chrono::hours(71));
  CHECK(queue.finding("expired_unsent").hint.find("--since 4d ") != std::string::npos);
  // As mailroom resend --outcome expired --extend 15m does, for one of them, and for the others.
  connection.run("UPDATE tokens SET expires_at = extract(epoch FROM now())::bigint + 900");
  connection.run("SELECT mailroom_replay('mailroom', ARRAY[2], '{}')");
  CHECK(queue.status().expired.tokens == 2);
  connection.run("SELECT mailroom_replay('mailroom', ARRAY[1, 3], '{}')");
  CHECK(queue.status().expired.tokens == 0);
  CHECK_FALSE(queue.has("expired_unsent"));
}

TEST_CASE("a sink that nobody tries any more is not shown") {
  Queue queue;
  queue.connection->run(
      "INSERT INTO mailroom_sinks VALUES "
      "('new:25', 1, now(), now(), now() + interval '1 min', 'down'), "
      "('idle:25', 1, now() - interval '1 h', now() - interval '9 min', now() - interval '9 min', 'down'), "
      "('old:25', 1, now() - interval '1 h', now() - interval '11 min', now() - interval '11 min', 'down')");
  const auto sinks = queue.status().deliveries.sinks;
  REQUIRE(sinks.size() == 2);
  CHECK(sinks[0].name == "idle:25");
  CHECK(sinks[1].name == "new:25");
}

TEST_CASE("status counts acknowledged tokens, and sees the collector") {
  Queue queue;
  insert_accounts(*queue.connection, 7);
  const auto session = attach(queue.database);
  CHECK(drain(*session, 3).size() == 7);
  const auto status = queue.status();
  CHECK(status.emissions.total() == 7);
  CHECK(status.emissions.known == Milliseconds{300'000});
  CHECK(status.pending.total() == 0);
  CHECK(status.cursor == 7);
  CHECK(status.open_batches.empty());
  REQUIRE(status.collectors.size() == 1);
  const auto& collector = status.collectors[0];
  CHECK(collector.queue == "mailroom");
  CHECK(collector.session.readable);
  CHECK(collector.session.application.find("mailroom collect " + operator_name() + ":") == 0);
  CHECK(collector.session.state == "idle");
  CHECK(collector.session.connected_for);
  CHECK(queue.findings().empty());
  queue.connection->run("UPDATE mailroom_batches SET emitted_at = emitted_at - interval '6 minutes'");
  CHECK(queue.status().emissions.total() == 0);
}

TEST_CASE("status blames the idle transaction that a gap waits for, and its fix closes the gap") {
  Queue queue;
  const auto session = attach(queue.database);
  const auto open = begin_insert(queue.database, 3, "open", "shop");
  const auto stranger = queue.database.connect("stranger");
  stranger->run("CREATE TABLE other (x int)");
  stranger->run("BEGIN");
  stranger->run("INSERT INTO other VALUES (1)");
  insert_accounts(*queue.connection, 2);
  CHECK(drain(*session).size() == 2);

  const auto status = queue.status();
  CHECK(status.gap_ids == 3);
  CHECK(status.pending.total() == 0);
  const auto holder = holder_of(status, open->backend_pid());
  REQUIRE(holder);
  CHECK(holder->writes_tokens);
  CHECK(holder->ids == 3);
  CHECK(holder->session.state == "idle in transaction");
  CHECK(holder->session.command == "INSERT");
  CHECK(holder->session.application.find(app_of("shop")) == 0);
  CHECK(holder->session.transaction_age);
  const auto other = holder_of(status, stranger->backend_pid());
  REQUIRE(other);
  CHECK_FALSE(other->writes_tokens);

  const auto finding = queue.finding("gap_held", impatient());
  CHECK(finding.severity == health::Severity::warning);
  queue.connection->run(finding.fix);
  CHECK(eventually([&] { return !holder_of(queue.status(), open->backend_pid()); }));
  CHECK_FALSE(queue.has("gap_held", impatient()));
}

TEST_CASE("status counts late tokens in a gap as pending") {
  Queue queue;
  const auto session = attach(queue.database);
  const auto open = begin_insert(queue.database, 3, "open", "shop");
  insert_accounts(*queue.connection, 2);
  CHECK(drain(*session).size() == 2);
  open->run("COMMIT");
  CHECK(queue.status().pending.in_gap == 3);
  CHECK(queue.status().lag());
  CHECK(drain(*session).size() == 3);
  CHECK(queue.status().pending.total() == 0);
}

TEST_CASE("status blames a prepared transaction by its gid, and its fix closes the gap") {
  Queue queue;
  queue.connection->run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
  const auto session = attach(queue.database);
  const auto gid = "it's " + queue.database.name();
  const auto preparing = begin_insert(queue.database, 1, "prepared", "shop");
  preparing->run("PREPARE TRANSACTION 'it''s " + queue.database.name() + "'");
  insert_accounts(*queue.connection, 1);
  CHECK(drain(*session).size() == 1);

  const auto status = queue.status();
  const auto holder =
      std::find_if(status.gap_holders.begin(), status.gap_holders.end(),
                   [&](const status::GapHolder& each) { return each.session.pid == 0 && each.gid == gid; });
  REQUIRE(holder != status.gap_holders.end());
  CHECK(holder->writes_tokens);
  CHECK(holder->session.transaction_age);
  const auto finding = queue.finding("gap_held", impatient());
  CHECK(finding.text.find(gid) != std::string::npos);
  queue.connection->run(finding.fix);
  CHECK(value<int>(*queue.connection,
                   "SELECT count(*) FROM pg_prepared_xacts WHERE database = "
                   "current_database()") == 0);
  CHECK_FALSE(queue.has("gap_held", impatient()));
}

TEST_CASE("status blames the collector that holds a batch too long, and its fix releases the batch") {
  Queue queue;
  insert_accounts(*queue.connection, 4);
  auto session = attach(queue.database);
  const auto lease = take(*session);
  auto status = queue.status();
  REQUIRE(status.open_batches.size() == 1);
  CHECK(status.open_batches[0].id == lease.batch);
  CHECK(status.open_batches[0].tokens == 4);
  CHECK(status.open_batches[0].session_lives);
  CHECK(status.open_batches[0].claimed_by.find("mailroom collect " + operator_name() + ":") == 0);
  CHECK(status.pending.leased == 4);
  CHECK(queue.findings().empty());

  queue.connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '5 minutes'");
  auto survivor = attach(queue.database);
  const auto finding = queue.finding("batch_open");
  CHECK(finding.severity == health::Severity::failure);
  CHECK(finding.fix ==
        "SELECT pg_terminate_backend(" + std::to_string(status.open_batches[0].collector) + ");");
  queue.connection->run(finding.fix);
  CHECK(eventually([&] { return !queue.status().open_batches[0].session_lives; }));
  CHECK(queue.has("batch_left"));
  CHECK(eventually([&] { return drain(*survivor).size() == 4; }));
  CHECK(queue.findings().empty());
}

TEST_CASE("status reports dead batches, and its fix emits their tokens") {
  Queue queue;
  insert_accounts(*queue.connection, 3);
  attach(queue.database)->claim({.limit = 10, .partial = true});
  queue.connection->run("UPDATE mailroom_batches SET attempts = 20");
  const auto session = attach(queue.database);
  CHECK(eventually([&] { return session->claim({.limit = 10, .partial = true}).dead.has_value(); }));
  const auto status = queue.status();
  REQUIRE(status.dead.size() == 1);
  CHECK(status.dead[0].tokens == 3);
  CHECK(status.open_batches.empty());
  const auto finding = queue.finding("dead");
  CHECK(finding.severity == health::Severity::warning);
  queue.connection->run(finding.fix);
  CHECK(queue.status().pending.in_replay == 3);
  CHECK_FALSE(queue.has("dead"));
  CHECK(drain(*session).size() == 3);
  CHECK_FALSE(queue.has("dead"));
}

TEST_CASE("a dead batch is a problem until each of its tokens is sent again, revoked, used or deleted") {
  Queue queue;
  insert_accounts(*queue.connection, 5);
  attach(queue.database)->claim({.limit = 10, .partial = true});
  queue.connection->run("UPDATE mailroom_batches SET attempts = 20");
  const auto session = attach(queue.database);
  REQUIRE(eventually([&] { return session->claim({.limit = 10, .partial = true}).dead.has_value(); }));
  const auto left = [&] {
    const auto dead = queue.status().dead;
    return dead.empty() ? 0 : dead[0].tokens;
  };
  CHECK(left() == 5);
  queue.connection->run("SELECT mailroom_replay('mailroom', '{1}', '{}')");
  CHECK(left() == 4);
  queue.connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 2");
  queue.connection->run("DELETE FROM tokens WHERE id = 3");
  CHECK(left() == 2);
  // What only expires reaches nobody.
  queue.connection->run("UPDATE tokens SET expires_at = created_at WHERE id = 4");
  CHECK(left() == 2);
  OperatorRig person(queue.database);
  CHECK(person.mailroom({"revoke", "token:4", "token:5", "--yes"}).status == 0);
  CHECK(left() == 1);
  queue.connection->run("UPDATE mailroom_batches SET dead_at = dead_at - interval '25 hours'");
  CHECK_FALSE(queue.has("dead"));
}

TEST_CASE("a dead batch is a problem no longer once the cursor was moved back over it") {
  Queue queue;
  insert_accounts(*queue.connection, 3);
  attach(queue.database)->claim({.limit = 10, .partial = true});
  queue.connection->run("UPDATE mailroom_batches SET attempts = 20");
  const auto session = attach(queue.database);
  REQUIRE(eventually([&] { return session->claim({.limit = 10, .partial = true}).dead.has_value(); }));
  queue.connection->run("SELECT mailroom_rewind('mailroom', 1, 100, '{}')");
  REQUIRE(queue.status().dead.size() == 1);
  CHECK(queue.status().dead[0].tokens == 1);
  queue.connection->run("SELECT mailroom_rewind('mailroom', 0, 100, '{}')");
  CHECK(queue.status().dead.empty());
}

TEST_CASE("a database that went back is a warning for a day, or until tokens were emitted again") {
  Queue queue;
  insert_accounts(*queue.connection, 2);
  const auto session = attach(queue.database);
  CHECK(drain(*session).size() == 2);
  CHECK_FALSE(queue.has("went_back"));
  session->record("went back", R"({"newest": 7, "known": 1234})");
  const auto finding = queue.finding("went_back");
  CHECK(finding.severity == health::Severity::warning);
  CHECK(finding.text.find("had claimed batch 1,234, and then the newest was 7") != std::string::npos);
  CHECK(finding.hint.find("mailroom reconcile --since 1d") != std::string::npos);
  queue.connection->run("UPDATE mailroom_operations SET at = at - interval '25 hours'");
  CHECK_FALSE(queue.has("went_back"));
  session->record("went back", R"({"newest": 7, "known": 1234})");
  CHECK(queue.has("went_back"));
  session->record("went back", R"({"newest": "none", "known": 1e30})");
  CHECK(queue.has("went_back"));
  queue.connection->run("SELECT mailroom_replay('mailroom', '{1}', '{}')");
  CHECK_FALSE(queue.has("went_back"));
}

TEST_CASE("tokens to be replayed are pending, and are no gap") {
  Queue queue;
  insert_accounts(*queue.connection, 5);
  const auto session = attach(queue.database);
  CHECK(drain(*session).size() == 5);
  queue.connection->run("SELECT mailroom_replay('mailroom', '{2,4}', '{}')");
  const auto status = queue.status();
  CHECK(status.replay_ids == 2);
  CHECK(status.gap_ids == 0);
  CHECK(status.gap_holders.empty());
  CHECK(status.pending.in_replay == 2);
  CHECK(drain(*session).size() == 2);
  CHECK(queue.status().replay_ids == 0);
}

TEST_CASE("status blames the session that holds the queue's lock, and its fix lets claims proceed") {
  Queue queue;
  CHECK_FALSE(queue.status().lock);
  const auto careless = queue.database.connect("psql");
  careless->run("BEGIN");
  careless->run("SELECT mailroom_lock_queue('mailroom')");
  const auto status = queue.status();
  REQUIRE(status.lock);
  CHECK(status.lock->session.pid == careless->backend_pid());
  CHECK_FALSE(status.lock->longest_wait);
  queue.connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 0)");
  CHECK_FALSE(queue.status("second").lock);
  queue.connection->run(queue.finding("queue_locked", impatient()).fix);
  CHECK(eventually([&] { return !queue.status().lock; }));
}

TEST_CASE("status reports a sequence behind the cursor") {
  Queue queue;
  insert_accounts(*queue.connection, 5);
  CHECK(drain(*attach(queue.database)).size() == 5);
  CHECK_FALSE(queue.has("sequence_behind"));
  queue.connection->run("TRUNCATE tokens RESTART IDENTITY");
  CHECK(queue.finding("sequence_behind").severity == health::Severity::failure);
}

TEST_CASE("status counts what was refused since the last acceptance, from its first attempt on") {
  Queue queue;
  const auto record = [&](int token, const std::string& state, int attempts, const std::string& ages) {
    queue.connection->run(
        "INSERT INTO mailroom_deliveries (queue, token, state, attempts, code, reply, batch, first_at, last_at) "
        "SELECT 'mailroom', $1, $2, $3, 451, 'later', 1, now() - a[1] * interval '1 s', now() - a[2] * interval '1 s' "
        "FROM (SELECT string_to_array($4, ',')::int[] AS a) ages",
        token, state, attempts, ages);
  };
  record(1, "rejected", 1, "3500,3500");
  record(2, "accepted", 1, "600,600");
  CHECK(queue.status().deliveries.refused.tokens == 0);
  for (int token = 3; token < 13; ++token)
    record(token, "deferred", 2, "300,5");
  // Nobody has said anything of these.
  record(13, "deferred", 0, "3000,4");
  record(14, "rejected", 1, "9000,8000");
  const auto refused = queue.status().deliveries.refused;
  CHECK(refused.tokens == 10);
  CHECK(refused.lasts >= std::chrono::seconds(300));
  CHECK(refused.lasts < std::chrono::seconds(1500));
  CHECK(refused.last == "451 later");
  CHECK(queue.finding("only_refusals").severity == health::Severity::failure);
  record(15, "accepted", 1, "1,1");
  CHECK_FALSE(queue.has("only_refusals"));
}

}  // namespace mailroom::test::status_test
