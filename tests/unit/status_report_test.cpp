// The output of status: the screen, the line, the trends.

#include "cmd/status/status_report.hpp"

#include <sstream>

#include "base/json.hpp"
#include "base/terminal_text.hpp"
#include "cmd/status/status_watch.hpp"
#include "support/catch.hpp"
#include "support/text_lines.hpp"
#include "support/with_locale.hpp"

namespace mailroom::test::status_report_test {

using namespace std::chrono_literals;

namespace {

using Values = std::vector<std::optional<double>>;

cmd::StatusReport crowded() {
  cmd::StatusReport report;
  auto& queue = report.queue;
  queue.queue = "mailroom";
  queue.now = Moment(1'800'000'000s);
  queue.cursor = 1'234'567'890;
  queue.newest = 2'234'567'890;
  queue.pending.waiting = 1'000'000'000;
  queue.pending.estimated = true;
  queue.pending.leased = 100'000;
  queue.pending.in_gap = 200'000;
  queue.pending.in_replay = 300'000;
  queue.pending.oldest_created_at = Moment(1'790'000'000s);
  status::ServerSession session;
  session.pid = 4'194'304;
  session.application = "mailroom collect@a-host-with-a-rather-long-name.example.net:4194304";
  session.user = "a_role_with_a_long_name";
  session.readable = true;
  session.state = "idle in transaction (aborted)";
  session.wait = "Lock/transactionid";
  session.connected_for = 2000h;
  session.transaction_age = 2000h;
  session.silent_for = 2000h;
  status::GapHolder prepared{
      .session = session, .gid = "a\x1b[2Jgid", .writes_tokens = true, .ids = 1'000'000};
  prepared.session.pid = 0;
  for (int i = 0; i < 20; ++i) {
    queue.collectors.push_back({.session = session, .queue = "mailroom"});
    queue.open_batches.push_back({.id = 1'000'000'000 + i,
                                  .tokens = 10'000,
                                  .attempts = 20,
                                  .collector = session.pid,
                                  .claimed_by = session.application,
                                  .age = 2000h,
                                  .session_lives = true});
    queue.gap_holders.push_back({.session = session, .gid = "", .writes_tokens = true, .ids = 1'000'000});
  }
  queue.gap_holders[0] = prepared;
  queue.gap_ids = 1'000'000;
  queue.replay_ids = 300'000;
  report.findings = health::judge_queue(queue, {});
  return report;
}

}  // namespace

TEST_CASE("a sparkline ranges from zero to the maximum") {
  const test::WithLocale locale("C.UTF-8");
  CHECK(sparkline({0, 1, 2, 3, 4, 5, 6, 7}) == "▁▂▃▄▅▆▇█");
  CHECK(sparkline({0, 0, 0}) == "▁▁▁");
  CHECK(sparkline(Values{std::nullopt, 5, std::nullopt}) == " █ ");
  CHECK(sparkline({}).empty());
  // A small value differs from zero.
  CHECK(sparkline({0, 0.001, 1000}) == "▁▂█");
  const test::WithLocale plain("C");
  CHECK(sparkline({0, 1, 2, 3, 4, 5, 6, 7}) == "_.:-=+*#");
  CHECK(largest(Values{std::nullopt, 2.5, 1}) == 2.5);
  CHECK(largest({}) == 0);
}

TEST_CASE("text is wrapped between words") {
  CHECK(wrapped("one two three", 7, 2) == "one two\n  three");
  CHECK(wrapped("one two three", 80, 2) == "one two three");
  CHECK(wrapped("a-word-that-is-too-long x", 5, 2) == "a-word-that-is-too-long\n  x");
  CHECK(wrapped("äää ööö", 7, 2) == "äää ööö");
  CHECK(wrapped("", 7, 2).empty());
}

TEST_CASE("only commands are wider than 80 columns, and no control character is printed") {
  const auto report = crowded();
  const cmd::StatusTrend trend{.rate = Values(30, 123456.7), .lag = Values(30, 10'000'000.0)};
  const auto text = cmd::render_text(report, {.trend = &trend});
  CHECK(text.find("  max 123,456.7 tokens/s\n") != std::string::npos);
  for (const auto& line : lines_of(text)) {
    CAPTURE(line);
    CHECK((display_width(line) <= 80 || line.find("  fix: ") == 0));
  }
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("pending:     ~1,000,600,000 (100,000 leased, 200,000 in gap") != std::string::npos);
  CHECK(text.find("… and 12 more") != std::string::npos);
}

TEST_CASE("on a short screen tables are omitted, and findings never are") {
  const auto report = crowded();
  const auto shown = [&](std::size_t max_lines) {
    const auto text = cmd::render_text(report, {.max_lines = max_lines});
    CHECK(text.find("failure: batch") != std::string::npos);
    std::string tables;
    for (const auto* title : {"\ncollector ", "open batch  ", "\na gap waits for "})
      tables += text.find(title) != std::string::npos ? 'x' : '-';
    return tables;
  };
  const auto all = lines_of(cmd::render_text(report, {})).size();
  CHECK(shown(all) == "xxx");
  CHECK(shown(all - 1) == "-xx");
  CHECK(shown(all - 12) == "-x-");
  CHECK(shown(all - 23) == "---");
  CHECK(shown(0) == "---");
}

TEST_CASE("only the verdict and the findings are coloured") {
  cmd::StatusReport report;
  report.queue.queue = "mailroom";
  report.findings = health::judge_queue(report.queue, {});
  const auto text = cmd::render_text(report, {.colour = true});
  CHECK(text.find("queue mailroom: \x1b[1;33mhealthy, 1 warning\x1b[0m\n") == 0);
  CHECK(text.find("\x1b[1;33mwarning\x1b[0m: no collector") != std::string::npos);
}

TEST_CASE("a line names each code once") {
  const auto line = cmd::render_line(crowded());
  CHECK(line.find(" failure pending=~1000600000 lag=115d17h rate=0.0/s collectors=20 open=20 ") !=
        std::string::npos);
  CHECK(line.find(" findings=batch_open,gap_held\n") != std::string::npos);
}

TEST_CASE("the exit code is 8 for a failure, and 0 for a warning") {
  cmd::StatusReport report;
  CHECK(cmd::judge(cmd::StatusOverview{{report}}) == ExitCode::done);
  report.findings = {{health::Severity::warning, "a", "b"}};
  CHECK(cmd::judge(cmd::StatusOverview{{report}}) == ExitCode::done);
  report.findings.push_back({health::Severity::failure, "a", "b"});
  CHECK(cmd::judge(cmd::StatusOverview{{report}}) == ExitCode::unusable);
}

TEST_CASE("in JSON hidden values are null") {
  cmd::StatusReport report;
  status::ServerSession hidden;
  hidden.pid = 5;
  report.queue.collectors.push_back({.session = hidden, .queue = std::nullopt});
  const auto object = parse_json(cmd::render_json(cmd::StatusOverview{{report}}));
  const auto& collector = object.at("collectors").at(0);
  for (const auto* key : {"state", "address", "connected_seconds", "queue", "key"})
    CHECK(collector.at(key).is_null());
  CHECK(object.at("pending").at("lag_seconds").is_null());
  report.queue.on_standby = true;
  CHECK(parse_json(cmd::render_json(cmd::StatusOverview{{report}})).at("collectors").is_null());
}

TEST_CASE("an outage has a headline, and a line or an object of its own") {
  const auto report = crowded();
  const cmd::StatusOutage outage{
      .queue = "mailroom", .now = Moment(1'800'000'040s), .lasts = 40s, .reason = "it is \x1b gone"};
  const auto lines = lines_of(cmd::render_text(report, {.outage = &outage}));
  CHECK(lines[0] == "queue mailroom: no answer for 40s; the last report is below");
  CHECK(lines[1] == "reason:      it is ? gone");
  CHECK(lines[2] == "at:          2027-01-15T08:00:00Z");
  CHECK(cmd::render_line(outage) == "2027-01-15T08:00:40Z failure findings=unreachable for=40s\n");
  const auto object = parse_json(cmd::render_json(outage));
  CHECK(object.at("health") == "failure");
  CHECK(object.at("at") == "2027-01-15T08:00:40Z");
  CHECK(object.at("findings").at(0).at("code") == "unreachable");
}

TEST_CASE("the keys of collectors are shown, with their names if they differ") {
  auto report = crowded();
  auto& collectors = report.queue.collectors;
  const auto shown = [&] {
    for (const auto& line : lines_of(cmd::render_text(report, {}))) {
      if (line.starts_with("signing key:")) return line;
    }
    return std::string();
  };
  CHECK(shown().empty());
  collectors.resize(2);
  collectors[0].session.application = "mailroom send root@web1:77";
  collectors[1].session.application = "mailroom collect@web2:78";
  for (auto& collector : collectors)
    collector.key = "aaaaaaaaaaaaaaaa";
  CHECK(shown() == "signing key: aaaaaaaaaaaaaaaa");
  CHECK(parse_json(cmd::render_json(cmd::StatusOverview{{report}})).at("collectors").at(1).at("key") ==
        "aaaaaaaaaaaaaaaa");
  collectors[1].key = "bbbbbbbbbbbbbbbb";
  CHECK(shown() == "signing key: aaaaaaaaaaaaaaaa (send@web1:77), bbbbbbbbbbbbbbbb (collect@web2:78)");
}

TEST_CASE("the rate is known for the period whose records were read") {
  status::RecentEmissions emissions;
  emissions.tokens[0] = 50;
  emissions.tokens[29] = 20;
  emissions.known = 300s;
  const auto rates = cmd::rate_trend(emissions);
  REQUIRE(rates.size() == 30);
  CHECK(rates.back() == 5.0);
  CHECK(rates.front() == 2.0);
  CHECK(emissions.per_second() == Approx(70.0 / 300));
  emissions.known = 19s;
  CHECK(cmd::rate_trend(emissions)[29] == 5.0);
  CHECK_FALSE(cmd::rate_trend(emissions)[28]);
}

TEST_CASE("a lag counts until the next poll") {
  cmd::LagHistory history(4s);
  const Moment start(1'800'000'000s);
  CHECK(history.trend(start) == Values(30));
  history.add(start, 7s);
  CHECK(history.trend(start).back() == 7.0);
  CHECK_FALSE(history.trend(start)[28]);
  history.add(start + 2s, 3s);
  CHECK(history.trend(start + 2s).back() == 7.0);
  // Ten seconds later the second to last bucket has both values.
  history.add(start + 12s, 1s);
  const auto later = history.trend(start + 12s);
  CHECK(later[29] == 3.0);
  CHECK(later[28] == 7.0);
}

TEST_CASE("the lag is unknown between polls, and old values are dropped") {
  cmd::LagHistory history(4s);
  const Moment start(1'800'000'000s);
  history.add(start, 7s);
  history.add(start + 100s, 2s);
  const auto values = history.trend(start + 100s);
  CHECK(values[29] == 2.0);
  CHECK_FALSE(values[28]);
  CHECK_FALSE(values[24]);
  CHECK(values[20] == 7.0);
  history.add(start + 500s, 1s);
  const auto after = history.trend(start + 500s);
  CHECK(after[29] == 1.0);
  CHECK(std::count(after.begin(), after.end(), std::nullopt) == 29);
}

namespace {

/// A queue with tokens and no collector, and one that is paused.
cmd::StatusOverview two_queues() {
  cmd::StatusOverview overview{std::vector<cmd::StatusReport>(2)};
  auto& recovery = overview.queues[0];
  recovery.queue.queue = "recovery";
  recovery.queue.now = Moment(1'800'000'000s);
  recovery.queue.record.properties.actions = {"password_recovery"};
  recovery.queue.record.properties.priority = 10;
  recovery.queue.pending.waiting = 1234;
  recovery.queue.pending.oldest_created_at = Moment(1'800'000'000s - 90s);
  auto& mailroom = overview.queues[1];
  mailroom.queue.queue = "mailroom";
  mailroom.queue.record.pause = queue::QueuePause{.since = {}, .lasts = 5min, .actor = "ops", .reason = ""};
  for (auto& report : overview.queues)
    report.findings = health::judge_queue(report.queue, {});
  return overview;
}

/// The lines that begin with the name of a queue.
std::string row_of(const std::string& text, const std::string& queue) {
  for (const auto& line : lines_of(text)) {
    if (line.starts_with(queue + " ")) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("several queues are shown in a table, and a finding names its queue") {
  auto overview = two_queues();
  const auto text = cmd::render_text(overview, {.width = 100});
  CHECK(text.find("2 queues: unhealthy, 1 failure, 2 warnings\n") == 0);
  CHECK(row_of(text, "recovery") ==
        "recovery  recovery        10    1,234   1m30s        0.0           0  1 failure");
  CHECK(row_of(text, "mailroom") ==
        "mailroom  all              0        0       -        0.0           0  paused 5m by ops");
  CHECK(text.find("failure: recovery: 1,234 tokens wait and no collector") != std::string::npos);
  CHECK(text.find("warning: mailroom: no token is emitted, since the queue has been paused for 5m by ops") !=
        std::string::npos);
  CHECK(text.find("  fix: mailroom queue resume mailroom\n") != std::string::npos);
  CHECK(cmd::judge(overview) == ExitCode::unusable);
  overview.queues[0].findings.clear();
  CHECK(cmd::judge(overview) == ExitCode::done);
}

TEST_CASE("a problem of all queues is listed once, without their names") {
  auto overview = two_queues();
  for (auto& report : overview.queues)
    report.findings = {{health::Severity::warning, "a", "it is late"}};
  const auto findings = cmd::findings_of(overview);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].text == "it is late");
  overview.queues.push_back(overview.queues[0]);
  overview.queues[2].queue.queue = "third";
  overview.queues[2].findings.clear();
  CHECK(cmd::findings_of(overview).front().text == "recovery, mailroom: it is late");
}

TEST_CASE("a queue that waits for its rate says so, and how much is left") {
  auto overview = two_queues();
  auto& queue = overview.queues[0].queue;
  queue.record.budgets = {
      {.name = "recovery", .paced = {{14, 1000ms}, 10}, .ahead = std::chrono::duration<double>(0.5)},
      {.name = "relay", .paced = {{1, 60'000ms}, 1}, .ahead = std::chrono::duration<double>(12.0)}};
  overview.queues[0].findings.clear();
  CHECK(row_of(cmd::render_text(overview, {.width = 100}), "recovery").ends_with("  rate: next in 12s"));
  const auto text = cmd::render_text(overview.queues[0], {});
  CHECK(text.find("rate:        14/s, burst 10: 3 left\n") != std::string::npos);
  CHECK(text.find("rate:        1/min, burst 1, shared as relay: next in 12s\n") != std::string::npos);
  CHECK(text.find("takes:       recovery\n") != std::string::npos);
  CHECK(text.find("priority:    10\n") != std::string::npos);
  queue.pending = {};
  CHECK(row_of(cmd::render_text(overview, {.width = 100}), "recovery").ends_with("  healthy"));
}

TEST_CASE("several queues are a list in JSON, and a line each while watched") {
  auto overview = two_queues();
  const auto object = parse_json(cmd::render_json(overview));
  CHECK(object.at("health") == "failure");
  REQUIRE(object.at("queues").size() == 2);
  const auto& recovery = object.at("queues").at(0);
  CHECK(recovery.at("queue") == "recovery");
  CHECK(recovery.at("priority") == 10);
  CHECK(recovery.at("actions") == nlohmann::json{"password_recovery"});
  CHECK(recovery.at("paused").is_null());
  CHECK(recovery.at("findings").at(0).at("text").get<std::string>().starts_with("1,234 tokens wait"));
  CHECK(object.at("queues").at(1).at("paused").at("actor") == "ops");
  CHECK(object.at("queues").at(1).at("actions").is_null());
  const auto lines = lines_of(cmd::render_line(overview));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find(" failure queue=recovery pending=1234 ") != std::string::npos);
  CHECK(lines[1].find(" warning queue=mailroom pending=0 ") != std::string::npos);
  overview.queues.pop_back();
  CHECK(cmd::render_line(overview).find("queue=") == std::string::npos);
  CHECK(parse_json(cmd::render_json(overview)).at("queue") == "recovery");
}

}  // namespace mailroom::test::status_report_test
