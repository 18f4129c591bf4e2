// Findings from a queue's state: their code, severity, blamed session and fix.

#include "health/queue_health.hpp"

#include "status/fix_commands.hpp"
#include "status/pending_tokens.hpp"
#include "support/catch.hpp"

namespace mailroom::test::queue_health_test {

using namespace std::chrono_literals;

namespace {

constexpr Moment noon(1'800'000'000s);

status::ServerSession session(int pid, const std::string& application = "mailroom collect@web1:77") {
  status::ServerSession made;
  made.pid = pid;
  made.application = application;
  made.user = "app";
  made.readable = true;
  made.state = "idle";
  made.silent_for = 200ms;
  return made;
}

/// A queue with one running collector and nothing to do.
status::QueueStatus healthy() {
  status::QueueStatus status;
  status.queue = "mailroom";
  status.role = "looker";
  status.now = noon;
  status.cursor = 100;
  status.newest = 100;
  status.collectors.push_back({.session = session(11), .queue = "mailroom"});
  return status;
}

status::QueueStatus with_waiting(std::int64_t count, std::chrono::seconds age = 1s) {
  auto status = healthy();
  status.pending.waiting = count;
  status.pending.oldest_created_at = noon - age;
  return status;
}

status::GapHolder holder(Milliseconds age) {
  status::GapHolder made{.session = session(21, "shop"), .gid = "", .writes_tokens = true, .ids = 3};
  made.session.state = "idle in transaction";
  made.session.command = "INSERT";
  made.session.transaction_age = age;
  return made;
}

status::OpenBatch batch(Milliseconds age, bool session_lives) {
  return {.id = 7,
          .tokens = 10,
          .attempts = 1,
          .collector = 11,
          .claimed_by = "mailroom collect@web1:77",
          .age = age,
          .session_lives = session_lives};
}

/// `severity code` of each finding, in order.
std::vector<std::string> judged(const status::QueueStatus& status, const health::HealthLimits& limits = {}) {
  std::vector<std::string> found;
  for (const auto& finding : health::judge_queue(status, limits))
    found.push_back(std::string(health::severity_name(finding.severity)) + " " + finding.code);
  return found;
}

/// The only finding.
health::QueueFinding only(const status::QueueStatus& status, const health::HealthLimits& limits = {}) {
  const auto findings = health::judge_queue(status, limits);
  REQUIRE(findings.size() == 1);
  return findings.front();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using Found = std::vector<std::string>;

}  // namespace

TEST_CASE("a running queue is healthy, whatever waits for its batch to fill") {
  CHECK(judged(healthy()).empty());
  CHECK(judged(with_waiting(5'000'000, 3600s)).empty());
  CHECK(health::worst({}) == health::Severity::ok);
}

TEST_CASE("scheduled messages that no consumer makes tokens of are a failure") {
  auto status = healthy();
  status.scheduled = {.messages = 3, .next_at = status.now + 1h};
  CHECK(judged(status).empty());
  // A consumer looks at the whole schedule once a minute, and may be silent for 31 s.
  status.scheduled.next_at = status.now - 90s;
  CHECK(judged(status).empty());
  status.scheduled.next_at = status.now - 5min;
  auto finding = only(status);
  CHECK(finding.severity == health::Severity::failure);
  CHECK(finding.code == "schedule_overdue");
  CHECK(
      finding.text ==
      "the first of 3 scheduled messages has been overdue for 5m, and no connected collector makes tokens of them");
  CHECK(finding.fix.empty());

  status.may_not_release = "sender";
  finding = only(status);
  CHECK(
      finding.text ==
      "the first of 3 scheduled messages has been overdue for 5m, and sender, the role of a collector, may not execute "
      "mailroom_release()");
  CHECK(finding.fix == "GRANT EXECUTE ON FUNCTION public.mailroom_release(integer) TO sender;");
  CHECK(finding.fix.kind() == status::FixKind::grant);

  status.collectors.clear();
  CHECK(judged(status) == Found{"failure schedule_overdue"});
  // Without a consumer nothing is awaited but its restart.
  status.scheduled.next_at = status.now - 11s;
  CHECK(judged(status) == Found{"failure schedule_overdue"});
  status.scheduled.next_at = status.now - 9s;
  CHECK(judged(status) == Found{"warning no_collector"});
  status.scheduled.next_at = status.now - 5min;
  status.pending.waiting = 2;
  CHECK(judged(status) == Found{"failure no_collector", "failure schedule_overdue"});
  // A copy mails nobody, whoever would serve it.
  status.home_problem = "its tables were restored from a dump";
  CHECK(judged(status) == Found{"failure copy"});
}

TEST_CASE("tokens that no queue takes are a failure once their queue was dropped") {
  auto status = healthy();
  status.untaken = {{.name = "recovery", .tokens = 0}};
  CHECK(judged(status).empty());
  status.untaken.front().tokens = 8;
  CHECK(judged(status) == Found{"warning untaken"});
  CHECK(only(status).fix == "mailroom queue create recovery --action recovery");
  status.untaken.front().dropped_at = Moment(std::chrono::seconds(1'795'744'800));
  const auto finding = only(status);
  CHECK(finding.severity == health::Severity::failure);
  CHECK(finding.text ==
        "no queue takes recovery tokens: 8 wait and are not emitted, since their queue was dropped");
  CHECK(finding.fix == "mailroom queue create recovery --action recovery --from 2026-11-27T02:00:00Z");
}

TEST_CASE("a missing collector is a failure once tokens wait") {
  auto status = with_waiting(5);
  status.collectors.clear();
  const auto finding = only(status);
  CHECK(finding.severity == health::Severity::failure);
  CHECK(finding.text == "5 tokens wait and no collector is connected. Start the collector's service");
  CHECK(finding.fix.empty());
  CHECK(finding.hint == status::find_service(std::nullopt, "web1"));
  status.pending = {};
  CHECK(judged(status) == Found{"warning no_collector"});
}

TEST_CASE("a consumer that serves other queues alone is named, with the queue that it lacks") {
  auto status = with_waiting(40);
  status.queue = "recovery";
  status.elsewhere = {status.collectors.front().session};
  status.collectors.clear();
  status.elsewhere.front().application = "mailroom send@web1:77";
  const auto finding = only(status);
  CHECK(
      finding.text ==
      "40 tokens wait and no connected collector serves this queue. One is connected for other queues alone");
  CHECK(finding.fix.empty());
  CHECK(finding.hint ==
        "add recovery to --queue of process 77 on web1, or to the queues in its file, and restart it");
}

TEST_CASE("the hint for a missing collector looks for the service on the last collector's host") {
  auto status = with_waiting(5);
  status.collectors.clear();
  status.host = "web1";
  status.last_claim = status::LastClaim{.claimed_by = "mailroom collect@web1:77", .age = 90s};
  CHECK(contains(only(status).text, "The last one was process 77 on web1, 1m30s ago"));
  CHECK(only(status).hint == status::find_service(std::nullopt, "web1"));
}

TEST_CASE("a batch is late after 30 seconds") {
  auto status = healthy();
  status.open_batches = {batch(30s, true)};
  CHECK(judged(status).empty());
  status.open_batches = {batch(30'001ms, true)};
  const auto finding = only(status);
  CHECK(finding.code == "batch_open");
  CHECK(finding.severity == health::Severity::failure);
  CHECK(contains(finding.text, "mailroom collect@web1:77"));
  // Terminating its session would not help without another collector.
  CHECK(finding.fix.empty());
  CHECK(
      finding.hint ==
      "if it is stopped, this resumes it: ssh web1 kill -CONT 77. Otherwise its log says what it waits for");
  status.host = "web1";
  status.open_batches[0].process = status::ProcessSight::stopped;
  CHECK(only(status).fix == "kill -CONT 77");
  CHECK(contains(only(status).text, ": that process is stopped. SIGCONT resumes process 77 on web1"));
  status.collectors.push_back({.session = session(12, "mailroom collect@web2:88"), .queue = "mailroom"});
  // Whoever takes the batch over would mail again what the stopped process has sent.
  CHECK(only(status).fix == "kill -CONT 77");
  CHECK(
      contains(only(status).hint, "SELECT pg_terminate_backend(11); then another one takes the batch over"));
  status.collectors.back().session.silent_for = 32s;
  CHECK(judged(status) == Found{"failure batch_open", "warning collector_silent"});
  CHECK(health::judge_queue(status, {}).front().fix == "kill -CONT 77");
  // Ending the session of a process that waits for a relay would mail what the relay has once more.
  status.open_batches[0].process = status::ProcessSight::runs;
  status.open_batches[0].claimed_by = "mailroom send@web1:77";
  CHECK(health::judge_queue(status, {}).front().fix.empty());
  CHECK(contains(health::judge_queue(status, {}).front().text,
                 "that process runs: it waits for the answer of a relay"));
  status.open_batches[0].process = status::ProcessSight::unknown;
  // A session without a collector's name can only be terminated.
  status.open_batches[0].claimed_by = "psql";
  CHECK(health::judge_queue(status, {}).front().fix == "SELECT pg_terminate_backend(11);");
}

TEST_CASE("an abandoned batch that no collector takes over is a failure") {
  auto status = healthy();
  status.open_batches = {batch(31s, false)};
  CHECK(judged(status) == Found{"failure batch_left"});
  status.collectors.clear();
  CHECK(judged(status) == Found{"failure batch_left", "warning no_collector"});
  // With waiting tokens the missing collector is the only finding.
  status.pending.leased = 10;
  status.pending.oldest_created_at = noon - 40s;
  CHECK(judged(status) == Found{"failure no_collector"});
}

TEST_CASE("a silent collector is a failure if no other works and tokens wait") {
  auto status = with_waiting(1, 60s);
  status.collectors[0].session.silent_for = 31s;
  CHECK(judged(status).empty());
  status.collectors[0].session.silent_for = 32s;
  CHECK(only(status).fix.empty());
  CHECK(contains(only(status).hint, "ssh web1 kill -CONT 77"));
  status.collectors[0].process = status::ProcessSight::stopped;
  CHECK(only(status).fix == "ssh web1 kill -CONT 77");
  CHECK(contains(only(status).text, "SIGCONT resumes process 77 on web1"));
  status.collectors[0].process = status::ProcessSight::runs;
  CHECK(only(status).fix.empty());
  CHECK(contains(only(status).text, "has not polled for 32s, though its process runs"));
  CHECK(judged(status) == Found{"failure collector_silent"});
  status.collectors.push_back({.session = session(12), .queue = "mailroom"});
  CHECK(judged(status) == Found{"warning collector_silent"});
  status.collectors.pop_back();
  status.pending = {};
  CHECK(judged(status) == Found{"warning collector_silent"});
  // A late batch includes this finding.
  status.open_batches = {batch(40s, true)};
  CHECK(judged(status) == Found{"failure batch_open"});
}

TEST_CASE("collectors that sign with different keys are a failure that names them") {
  auto status = healthy();
  status.collectors.push_back({.session = session(12), .queue = "mailroom"});
  status.collectors.push_back({.session = session(13), .queue = "mailroom"});
  CHECK(health::judge_queue(status, {}).empty());
  status.collectors[0].key = "aaaaaaaaaaaaaaaa";
  status.collectors[1].key = "aaaaaaaaaaaaaaaa";
  // A collector that does not show its key may have the same one.
  CHECK(health::judge_queue(status, {}).empty());
  status.collectors[2].key = "bbbbbbbbbbbbbbbb";
  const auto findings = health::judge_queue(status, {});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == health::Severity::failure);
  CHECK(findings[0].code == "different_keys");
  CHECK(findings[0].text.find(
            "aaaaaaaaaaaaaaaa by collect@web1:77 and collect@web1:77, bbbbbbbbbbbbbbbb by collect@web1:77") !=
        std::string::npos);
}

TEST_CASE("tokens that were signed with a key that nobody has now are known for an hour") {
  auto status = healthy();
  status.collectors[0].key = "aaaaaaaaaaaaaaaa";
  status.recent_keys = {{"aaaaaaaaaaaaaaaa", 5, 1min}, {"bbbbbbbbbbbbbbbb", 30, 2min}};
  auto finding = only(status);
  CHECK(finding.severity == health::Severity::warning);
  CHECK(finding.code == "signed_with_other_key");
  CHECK(contains(
      finding.text,
      "30 unused links of the last hour, the last mailed 2m ago, are signed with the key bbbbbbbbbbbbbbbb"));
  CHECK(contains(finding.hint, "mailroom audit --key bbbbbbbbbbbbbbbb --since 1d names"));
  CHECK(contains(finding.hint, "mailroom resend --key bbbbbbbbbbbbbbbb --since 1d mails"));
  health::HealthLimits limits;
  limits.keys = {"aaaaaaaaaaaaaaaa"};
  CHECK(judged(status, limits) == Found{"failure signed_with_other_key"});
  // A verifier takes it still.
  limits.keys = {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"};
  CHECK(judged(status, limits).empty());
}

TEST_CASE("a collector that signs with another key than tokens are verified with is a failure") {
  auto status = healthy();
  status.collectors[0].key = "aaaaaaaaaaaaaaaa";
  health::HealthLimits limits;
  limits.keys = {"aaaaaaaaaaaaaaaa"};
  CHECK(judged(status, limits).empty());
  limits.keys = {"bbbbbbbbbbbbbbbb"};
  CHECK(judged(status, limits) == Found{"failure other_key"});
  CHECK(
      only(status, limits).text ==
      "collect@web1:77 signs with the key aaaaaaaaaaaaaaaa, and not with bbbbbbbbbbbbbbbb, the key configured here: a "
      "verifier with this key rejects its tokens");
  // It has not reloaded yet, and its tokens are verified all the same.
  limits.keys = {"bbbbbbbbbbbbbbbb", "aaaaaaaaaaaaaaaa"};
  CHECK(judged(status, limits) == Found{"warning other_key"});
  status.collectors[0].key.clear();
  CHECK(judged(status, limits).empty());
}

TEST_CASE("a collector that hangs in a statement is told apart from a stopped one") {
  auto status = with_waiting(1, 60s);
  auto& stuck = status.collectors[0].session;
  stuck.state = "active";
  stuck.wait = "Lock/tuple";
  stuck.silent_for = 50s;
  const auto finding = only(status);
  CHECK(finding.code == "collector_blocked");
  CHECK(contains(finding.text, "for 50s, waiting for Lock/tuple"));
  CHECK(finding.fix.empty());
  CHECK(contains(finding.hint, "pg_blocking_pids(11)"));
}

TEST_CASE("the holder of the queue's lock is blamed, not the collectors that wait for it") {
  auto status = with_waiting(1, 60s);
  auto& waiting = status.collectors[0].session;
  waiting.state = "active";
  waiting.wait = "Lock/advisory";
  waiting.silent_for = 50s;
  status.lock = status::QueueLockHolder{.session = session(31, "psql"), .longest_wait = 50s};
  status.lock->session.transaction_age = 55s;
  const auto finding = only(status);
  CHECK(finding.code == "queue_locked");
  CHECK(finding.fix == "SELECT pg_terminate_backend(31);");
  CHECK(contains(finding.text, "pid 31 (psql, user app)"));
}

TEST_CASE("the lock of an ordinary claim is no finding") {
  auto status = healthy();
  status.lock = status::QueueLockHolder{.session = session(11), .longest_wait = 10s};
  status.lock->session.transaction_age = 10s;
  CHECK(judged(status).empty());
  // Of another user's session only the wait is visible.
  status.lock->session.readable = false;
  status.lock->session.transaction_age.reset();
  status.lock->longest_wait = 11s;
  CHECK(judged(status) == Found{"failure queue_locked"});
}

TEST_CASE("a transaction that keeps a gap open is a warning after a minute") {
  auto status = healthy();
  status.gap_holders = {holder(60s)};
  CHECK(judged(status).empty());
  status.gap_holders = {holder(61s)};
  const auto finding = only(status);
  CHECK(finding.severity == health::Severity::warning);
  CHECK(contains(finding.text, "pid 21 (shop, user app) has had a transaction open for 1m1s"));
  CHECK(contains(finding.text, "all others are emitted"));
  CHECK(finding.fix == "SELECT pg_terminate_backend(21);");
}

TEST_CASE("a transaction that writes no tokens is no finding, however old") {
  auto status = healthy();
  status.gap_holders = {holder(9h)};
  status.gap_holders[0].writes_tokens = false;
  CHECK(judged(status).empty());
}

TEST_CASE("a prepared transaction is fixed by its gid") {
  auto status = healthy();
  status.gap_holders = {holder(2h)};
  status.gap_holders[0].session.pid = 0;
  status.gap_holders[0].gid = "it's me";
  const auto finding = only(status);
  CHECK(contains(finding.text, "prepared transaction it's me of user app has been open for 2h"));
  CHECK(finding.fix == "ROLLBACK PREPARED 'it''s me';");
  status.gap_holders[0].gid = "two\nlines";
  CHECK(only(status).fix.empty());
  CHECK(contains(only(status).hint, "SELECT gid, prepared FROM pg_prepared_xacts;"));
}

TEST_CASE("hidden sessions of another user are reported") {
  auto status = healthy();
  status.gap_holders = {holder(0s)};
  status.gap_holders[0].session.readable = false;
  status.gap_holders[0].session.transaction_age.reset();
  CHECK(judged(status) == Found{"warning gap_hidden"});
  CHECK(only(status).fix == "GRANT pg_monitor TO looker;");
  CHECK(status::activity_text(status.gap_holders[0].session) == "owned by another user; needs pg_monitor");
}

TEST_CASE("another sequence behind its table is a failure that names it") {
  auto status = healthy();
  status.sequences_behind = {
      {.name = "mailroom_batches_id_seq", .table = "mailroom_batches", .position = 3, .newest = 47}};
  CHECK(only(status).code == "sequence_behind");
  CHECK(only(status).text ==
        "mailroom_batches_id_seq is at 3, behind the newest id of mailroom_batches, 47: claims fail");
  CHECK(only(status).fix == "mailroom rewind-cursor --fix-sequence");
}

TEST_CASE("a collector that waits for a synchronous standby is told apart from one that others block") {
  auto status = with_waiting(5);
  auto& waits = status.collectors[0].session;
  waits.state = "active";
  waits.wait = "IPC/SyncRep";
  waits.silent_for = 9s;
  CHECK(judged(status).empty());
  waits.silent_for = 90s;
  status.lock = status::QueueLockHolder{.session = waits, .longest_wait = 60s};
  status.lock->session.transaction_age = 90s;
  status.open_batches.push_back(batch(80s, true));
  CHECK(only(status).code == "standby_awaited");
  CHECK(only(status).text.find(
            "pid 11 (mailroom collect@web1:77, user app) has waited for 1m30s for a synchronous "
            "standby") != std::string::npos);
  CHECK(only(status).fix == "ALTER SYSTEM SET synchronous_standby_names = '';\nSELECT pg_reload_conf();");
}

TEST_CASE("a queue of notifications that fills up is a problem that names the oldest transaction") {
  auto status = healthy();
  status.notifications.usage = 0.009;
  CHECK(judged(status).empty());
  status.notifications.usage = 0.02;
  CHECK(only(status).severity == health::Severity::warning);
  auto listener = session(31, "forgotten");
  listener.state = "idle in transaction";
  listener.command = "SELECT";
  listener.transaction_age = 3min;
  status.notifications.open_transactions = {listener};
  status.notifications.usage = 0.5;
  CHECK(only(status).severity == health::Severity::failure);
  CHECK(only(status).code == "notifications_held");
  CHECK(only(status).text.find("50 % full") != std::string::npos);
  CHECK(only(status).text.find("pid 31 (forgotten, user app)") != std::string::npos);
  CHECK(only(status).fix == "SELECT pg_terminate_backend(31);\nSELECT pg_notification_queue_usage();");
}

TEST_CASE("an application's commit that waits for a standby is a failure too") {
  auto status = healthy();
  auto signup = session(41, "signup");
  signup.state = "active";
  signup.wait = "IPC/SyncRep";
  signup.silent_for = 90s;
  status.longest_commit = signup;
  CHECK(only(status).code == "standby_awaited");
  CHECK(contains(only(status).text, "pid 41 (signup, user app) has waited for 1m30s"));
}

TEST_CASE("a sequence behind the cursor is a failure that names the command") {
  auto status = healthy();
  status.newest = 99;
  CHECK(only(status).severity == health::Severity::failure);
  CHECK(only(status).fix == "mailroom rewind-cursor --fix-sequence");
}

TEST_CASE("tokens that wait in another schema are a failure that names it") {
  auto status = healthy();
  status.schema = "app";
  status.other = status::OtherQueue{.schema = "public", .waiting = 2};
  CHECK(only(status).severity == health::Severity::failure);
  CHECK(only(status).text ==
        "2 tokens wait in the schema public, which no collector serves, and the schema app never had one");
  CHECK(only(status).fix.empty());
  CHECK(contains(only(status).hint, "mailroom --schema public status shows them"));
}

TEST_CASE("a limit is exceeded only above its value") {
  const auto status = with_waiting(10, 60s);
  health::HealthLimits limits;
  limits.max_lag = 60s;
  limits.max_pending = 10;
  CHECK(judged(status, limits).empty());
  limits.max_lag = 59'999ms;
  CHECK(judged(status, limits) == Found{"failure max_lag"});
  limits.max_pending = 9;
  CHECK(judged(status, limits) == Found{"failure max_lag", "failure max_pending"});
  limits.max_lag = 0s;
  limits.max_pending = 0;
  CHECK(judged(healthy(), limits).empty());
}

TEST_CASE("an estimate is marked if a limit is exceeded") {
  auto status = with_waiting(20'000);
  status.pending.estimated = true;
  health::HealthLimits limits;
  limits.max_pending = 5'000;
  CHECK(only(status, limits).text ==
        "~20,000 tokens wait, more than --max-pending 5,000. Another instance of the collector's service "
        "shares "
        "the work");
}

TEST_CASE("a dead batch is a warning, and can be replayed") {
  auto status = healthy();
  status.dead = {{.id = 7, .tokens = 1, .claimed_by = "mailroom collect@web1:77", .age = 90s}};
  const auto finding = only(status);
  CHECK(finding.severity == health::Severity::warning);
  CHECK(contains(finding.text, "batch 7 (1 token) was dead-lettered 1m30s ago"));
  CHECK(contains(finding.fix, "SELECT public.mailroom_replay('mailroom', ARRAY("));
}

TEST_CASE("a standby is not blamed for what only the primary shows") {
  auto status = with_waiting(5, 600s);
  status.on_standby = true;
  status.collectors.clear();
  status.open_batches = {batch(1h, false)};
  CHECK(judged(status) == Found{"warning standby"});
  health::HealthLimits limits;
  limits.max_lag = 1min;
  CHECK(judged(status, limits) == Found{"failure max_lag", "warning standby"});
}

TEST_CASE("failures come before warnings") {
  auto status = with_waiting(5, 600s);
  status.collectors.clear();
  status.newest = 1;
  status.gap_holders = {holder(2min)};
  CHECK(judged(status) == Found{"failure sequence_behind", "failure no_collector", "warning gap_held"});
  CHECK(health::worst(health::judge_queue(status, {})) == health::Severity::failure);
}

TEST_CASE("ages have at most two units") {
  const std::vector<std::pair<Milliseconds, std::string>> cases{
      {0ms, "0s"},          {850ms, "850ms"},           {1999ms, "1s"},
      {252'400ms, "4m12s"}, {3h + 25min + 9s, "3h25m"}, {52h + 59min, "2d4h"}};
  for (const auto& [age, text] : cases)
    CHECK(status::age_text(age) == text);
}

TEST_CASE("samples are within their range, do not overlap, and represent all of it") {
  for (const std::int64_t count : {1LL, 2LL, 1024LL, 1025LL, 1150LL, 5000LL, 123'457LL, 10'000'000LL}) {
    CAPTURE(count);
    auto samples = status::plan_samples(501, 500 + count);
    std::sort(samples.begin(), samples.end(),
              [](const status::IdSample& a, const status::IdSample& b) { return a.first < b.first; });
    double stands_for = 0;
    std::int64_t read = 0;
    auto free = std::int64_t{501};
    for (const auto& sample : samples) {
      CHECK(sample.first >= free);
      CHECK(sample.end > sample.first);
      free = sample.end;
      stands_for += static_cast<double>(sample.end - sample.first) * sample.weight;
      read += sample.end - sample.first;
    }
    CHECK(free == 501 + count);
    CHECK(stands_for == Approx(static_cast<double>(count)));
    CHECK(read <= 3'000);
  }
  CHECK(status::plan_samples(501, 500).empty());
}

TEST_CASE("a paused queue is a failure once tokens wait, and the fix is to resume it") {
  auto status = with_waiting(5, 60s);
  status.collectors[0].session.silent_for = 60s;
  status.record.pause =
      queue::QueuePause{.since = noon - 5min, .lasts = 5min, .actor = "ops", .reason = "relay moves"};
  CHECK(judged(status) == Found{"failure paused", "warning collector_silent"});
  CHECK(health::judge_queue(status, {}).front().text ==
        "5 tokens wait, since the queue has been paused for 5m by ops: relay moves");
  CHECK(health::judge_queue(status, {}).front().fix == "mailroom queue resume mailroom");
  status.collectors.clear();
  CHECK(judged(status) == Found{"failure paused", "warning no_collector"});
  health::HealthLimits limits;
  limits.max_lag = 30s;
  const auto late = health::judge_queue(status, limits).at(1);
  CHECK(late.code == "max_lag");
  CHECK(late.severity == health::Severity::failure);
  CHECK(late.text.ends_with("longer than --max-lag 30s: the queue is paused"));
  CHECK(late.fix == "mailroom queue resume mailroom");
  status.pending = {};
  CHECK(health::judge_queue(status, {}).front().text ==
        "no token is emitted, since the queue has been paused for 5m by ops: relay moves");
  CHECK(judged(status) == Found{"warning paused", "warning no_collector"});
}

TEST_CASE("no other collector helps a queue that its rate holds") {
  auto status = with_waiting(5, 60s);
  status.record.budgets = {
      {.name = "mailroom", .paced = {{1, 60'000ms}, 1}, .ahead = std::chrono::duration<double>(12.0)}};
  CHECK(judged(status).empty());
  health::HealthLimits limits;
  limits.max_pending = 4;
  CHECK(only(status, limits).text == "5 tokens wait, more than --max-pending 4: its rate allows no more");
}

TEST_CASE("a budget says how much is left, and when more may be taken") {
  queue::Budget budget{.name = "mailroom", .paced = {{2, 1000ms}, 4}, .ahead = {}};
  CHECK(budget.left() == 4);
  CHECK(budget.wait_for(4) == 0ms);
  budget.ahead = std::chrono::duration<double>(0.75);
  CHECK(budget.left() == 2);
  CHECK(budget.wait_for(2) == 0ms);
  CHECK(budget.wait_for(3) == 250ms);
  CHECK(budget.wait_for(100) == 750ms);
  budget.ahead = std::chrono::duration<double>(7.0);
  CHECK(budget.left() == 0);
  CHECK(budget.wait_for(1) == 5500ms);
}

}  // namespace mailroom::test::queue_health_test
