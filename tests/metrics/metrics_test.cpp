// The metrics of real consumers: what they count is what they have done.

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "support/catch.hpp"
#include "support/http_client.hpp"
#include "support/refusing_port.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::metrics_test {
namespace {

const std::vector<std::string> with_metrics{"--metrics", "127.0.0.1:0", "--format", "jsonl"};

config::ListenAddress address_of(const TestCollector& collector) {
  return metrics_address([&] { return collector.log(); });
}

std::size_t emitted_by(const TestCollector& collector) {
  return emitted_ids(collector.output()).size();
}

double emitted(const Scrape& scrape) {
  return scrape.value(
      R"(mailroom_tokens_total{queue="mailroom",action="activation",outcome="emitted",reason=""})");
}

}  // namespace

TEST_CASE("collect counts its tokens, batches and claims") {
  const TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 25);
  // The claim skips what has expired before the first due token, the fetch what has the wrong status.
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id <= 3");
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 10");
  TestCollector collector(database, with_metrics);
  const auto address = address_of(collector);
  REQUIRE(eventually([&] { return emitted_by(collector) == 21; }));
  Scrape scrape("");
  REQUIRE(eventually([&] {
    scrape = Scrape::of(address);
    return scrape.sum("mailroom_batches_total") == 3 && scrape.value("mailroom_loop_overdue_seconds") == 0;
  }));
  INFO(scrape.text);
  CHECK(emitted(scrape) == 21);
  CHECK(scrape.value(
            R"(mailroom_tokens_total{queue="mailroom",action="",outcome="skipped",reason="expired"})") == 3);
  CHECK(
      scrape.value(
          R"(mailroom_tokens_total{queue="mailroom",action="activation",outcome="skipped",reason="wrong_status"})") ==
      1);
  CHECK(scrape.sum("mailroom_tokens_total") == 25);
  CHECK(scrape.value(R"(mailroom_batches_total{queue="mailroom",trigger="full"})") == 2);
  CHECK(scrape.value(R"(mailroom_batches_total{queue="mailroom",trigger="drain"})") == 1);
  CHECK(scrape.value(R"(mailroom_batch_tokens_sum{queue="mailroom"})") == 22);
  for (const auto* stage : {"claim", "fetch", "sign", "write"})
    CHECK(scrape.value(fmt::format("mailroom_batch_stage_seconds_count{{queue=\"mailroom\",stage=\"{}\"}}",
                                   stage)) == 3);
  CHECK(scrape.value(R"(mailroom_emission_delay_seconds_count{queue="mailroom"})") == 21);
  CHECK(scrape.value(R"(mailroom_emission_delay_seconds_bucket{queue="mailroom",le="60"})") == 21);
  CHECK(scrape.value("mailroom_session_up") == 1);
  CHECK(scrape.value("mailroom_reconnects_total") == 0);
  CHECK(scrape.value("mailroom_database_up") == 1);
  CHECK(scrape.value(R"(mailroom_queue_consumers{queue="mailroom"})") == 1);
  CHECK(http_get(address, "/healthz").status == 200);
  CHECK(http_get(address, "/readyz").status == 200);
  CHECK(http_get(address, "/").status == 404);
  CHECK(collector.stop() == 0);
}

TEST_CASE("metrics show no address, login, token or key") {
  const TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5, "tell-tale");
  TestCollector collector(database, with_metrics);
  const auto address = address_of(collector);
  REQUIRE(eventually([&] { return emitted_by(collector) == 5; }));
  const auto text = Scrape::of(address).text;
  CHECK(text.find("tell-tale") == std::string::npos);
  CHECK(text.find('@') == std::string::npos);
  CHECK(text.find(std::string(test_key).substr(0, 12)) == std::string::npos);
  for (const auto& row : connection->run("SELECT encode(secret, 'hex') FROM tokens"))
    CHECK(text.find(row[0].c_str()) == std::string::npos);
}

TEST_CASE("nothing listens unless it is asked to") {
  const TestDatabase database;
  TestCollector collector(database, {});
  REQUIRE(collector.connected());
  CHECK(collector.log().find("metrics") == std::string::npos);
  // No thread for it either: the loop, the one that watches for a stop, the one that tells what a statement
  // waits for, and the one that ends statements.
  const auto status = read_file(fmt::format("/proc/{}/status", collector.process().pid()));
  CHECK(status.find("Threads:\t4\n") != std::string::npos);
}

TEST_CASE("a batch that waits for its timeout, and one that is replayed, are counted as such") {
  const TestDatabase database;
  const auto connection = database.connect();
  auto options = with_metrics;
  options.insert(options.end(), {"--batch-timeout", "100ms"});
  TestCollector collector(database, options);
  const auto address = address_of(collector);
  // The first batch of a session waits for no timeout.
  insert_accounts(*connection, 1, "first");
  REQUIRE(eventually([&] { return emitted_by(collector) == 1; }));
  insert_accounts(*connection, 4);
  REQUIRE(eventually([&] { return emitted_by(collector) == 5; }));
  connection->run("SELECT mailroom_rewind('mailroom', 0, 1000, '{}')");
  Scrape scrape("");
  REQUIRE(eventually([&] {
    scrape = Scrape::of(address);
    return emitted(scrape) == 10;
  }));
  INFO(scrape.text);
  CHECK(scrape.sum("mailroom_batches_total", "trigger=\"timeout\"") >= 1);
  CHECK(scrape.sum("mailroom_batches_total", "trigger=\"replay\"") >= 1);
  CHECK(scrape.sum("mailroom_batches_total", "trigger=\"full\"") == 0);
}

TEST_CASE("fifty slow scrapers hold up neither the collector nor other scrapers") {
  const TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, with_metrics);
  const auto address = address_of(collector);
  REQUIRE(collector.connected());
  std::vector<HttpConnection> slow;
  for (int i = 0; i < 50; ++i) {
    slow.emplace_back(address);
    if (i % 2 == 0) slow.back().send("G");
  }
  insert_accounts(*connection, 2000);
  REQUIRE(eventually([&] { return emitted_by(collector) == 2000; }));
  REQUIRE(eventually([&] { return emitted(Scrape::of(address)) == 2000; }));
}

TEST_CASE("without the database the metrics of the process are served, and after its return all") {
  const TestDatabase database;
  db::Connection admin("dbname=postgres", "test");
  insert_accounts(*database.connect(), 3);
  TestCollector collector(database, with_metrics);
  const auto address = address_of(collector);
  REQUIRE(eventually([&] { return emitted_by(collector) == 3; }));
  CHECK(Scrape::of(address).value("mailroom_database_up") == 1);
  admin.run("ALTER DATABASE " + database.name() + " ALLOW_CONNECTIONS false");
  admin.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", database.name());
  REQUIRE(eventually([&] { return http_get(address, "/readyz").status == 503; }));
  Scrape down("");
  REQUIRE(eventually([&] {
    down = Scrape::of(address);
    return down.value("mailroom_database_up") == 0;
  }));
  CHECK(emitted(down) == 3);
  CHECK(down.value("mailroom_session_up") == 0);
  CHECK(!down.has(R"(mailroom_queue_consumers{queue="mailroom"})"));
  CHECK(http_get(address, "/healthz").status == 200);
  admin.run("ALTER DATABASE " + database.name() + " ALLOW_CONNECTIONS true");
  insert_accounts(*database.connect(), 2, "later");
  Scrape again("");
  REQUIRE(eventually([&] {
    again = Scrape::of(address);
    return again.value("mailroom_database_up") == 1 && emitted(again) == 5;
  }));
  CHECK(again.value("mailroom_reconnects_total") >= 1);
  CHECK(again.value("mailroom_session_up") == 1);
  CHECK(emitted_by(collector) == 5);
}

TEST_CASE("collect counts what a sink answers, and shows one that takes nothing") {
  const TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  TestCollector collector(
      database,
      {"--metrics", "127.0.0.1:0", "--batch-timeout", "50ms", "--exec",
       "sh -c 'read -r batch rest; echo fail $batch 1 reject no >&3; echo ok $batch >&3; cat; exit 7'"});
  const auto address = address_of(collector);
  Scrape scrape("");
  REQUIRE(eventually([&] {
    scrape = Scrape::of(address);
    return scrape.sum("mailroom_tokens_total") == 3;
  }));
  INFO(scrape.text);
  CHECK(scrape.sum("mailroom_sink_answers_total", "outcome=\"accepted\"") == 2);
  CHECK(scrape.sum("mailroom_sink_answers_total", "outcome=\"rejected\"") == 1);
  CHECK(scrape.value(R"(mailroom_acceptance_delay_seconds_count{queue="mailroom"})") == 2);
  CHECK(value<int>(*connection,
                   "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'mailroom collect %@%' "
                   "AND datname = current_database()") == 1);
  CHECK(collector.stop() == 0);

  insert_accounts(*connection, 1, "late");
  TestCollector idle(database, {"--metrics", "127.0.0.1:0", "--exec", "false"});
  const auto its_address = address_of(idle);
  CHECK(eventually([&] { return Scrape::of(its_address).sum("mailroom_sink_unavailable_seconds") > 0; }));
  CHECK(idle.stop() == 0);
}

TEST_CASE("send counts mails by outcome, and the answers of each relay") {
  const TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  connection->run("SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 's', text => 't')");
  TestRelay relay({.play = [](const RelayMoment& moment) -> RelayAnswer {
    if (moment.step != RelayStep::rcpt) return {};
    if (moment.recipient.find("user1@") != std::string::npos)
      return RelayAnswer::reply("550 5.1.1 No such user");
    if (moment.recipient.find("user2@") != std::string::npos)
      return RelayAnswer::reply("451 4.7.1 Try again later");
    return {};
  }});
  TestSender sender(database.conninfo(), relay.url(), {"--metrics", "127.0.0.1:0"});
  const auto address = metrics_address([&] { return sender.log(); });
  Scrape scrape("");
  const auto outcome = [&](const std::string& name, const std::string& action = "activation") {
    return scrape.value(fmt::format(
        R"(mailroom_tokens_total{{queue="mailroom",action="{}",outcome="{}",reason=""}})", action, name));
  };
  REQUIRE(eventually([&] {
    scrape = Scrape::of(address);
    return scrape.sum("mailroom_tokens_total") == 7;
  }));
  INFO(scrape.text);
  CHECK(outcome("accepted") == 4);
  CHECK(outcome("rejected") == 1);
  CHECK(outcome("deferred") == 1);
  CHECK(outcome("accepted", "message") == 1);
  CHECK(outcome("rejected", "message") == 0);
  CHECK(!scrape.has(
      R"(mailroom_tokens_total{queue="mailroom",action="activation",outcome="emitted",reason=""})"));
  const auto answers = [&](const std::string& labels) {
    return scrape.value(
        fmt::format("mailroom_sink_answers_total{{sink=\"127.0.0.1:{}\",{}}}", relay.port(), labels));
  };
  CHECK(answers(R"(outcome="accepted",reply="2xx")") == 5);
  CHECK(answers(R"(outcome="rejected",reply="5xx")") == 1);
  CHECK(answers(R"(outcome="deferred",reply="4xx")") == 1);
  CHECK(scrape.sum("mailroom_sink_answer_seconds_count") == 7);
  CHECK(scrape.value(R"(mailroom_acceptance_delay_seconds_count{queue="mailroom"})") == 5);
  CHECK(sender.stop() == 0);
}

TEST_CASE("with traces, whoever asks for OpenMetrics gets exemplars, and others the usual format") {
  const TestDatabase database;
  const auto connection = database.connect();
  connection->run(
      "SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'x', text => 'y', options => "
      "'{\"traceparent\": \"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}')");
  const TestRelay relay;
  const RefusingPort nobody;
  TestSender sender(database.conninfo(), relay.url(), {"--metrics", "127.0.0.1:0"},
                    {{"MAILROOM_TRACE_ENDPOINT", "http://127.0.0.1:" + std::to_string(nobody.port())}});
  const auto address = metrics_address([&] { return sender.log(); });
  REQUIRE(eventually([&] { return Scrape::of(address).sum("mailroom_sink_answer_seconds_count") == 1; }));
  const auto open = http_ask(address,
                             "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                             "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n");
  INFO(open.body);
  CHECK(open.status == 200);
  CHECK(open.head.find("application/openmetrics-text; version=1.0.0") != std::string::npos);
  CHECK(open.body.ends_with("# EOF\n"));
  for (const auto* name :
       {"mailroom_sink_answer_seconds_bucket", "mailroom_acceptance_delay_seconds_bucket"}) {
    std::istringstream lines(open.body);
    int named = 0;
    for (std::string line; std::getline(lines, line);) {
      const bool has_trace =
          line.find("# {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"}") != std::string::npos;
      if (line.starts_with(name) && has_trace) ++named;
    }
    CAPTURE(name);
    CHECK(named == 1);
  }
  const auto usual = http_get(address, "/metrics");
  CHECK(usual.body.find("trace_id") == std::string::npos);
  CHECK(usual.body.find("# EOF") == std::string::npos);
  CHECK(Scrape(usual.body).has(R"(mailroom_trace_spans_total{result="dropped"})"));
  CHECK(sender.stop() == 0);
}

}  // namespace mailroom::test::metrics_test
