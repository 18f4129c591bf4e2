// docs/metrics.md lists the metrics that a collector, a sender and the service of submission show, no more
// and no less, and promtool finds nothing wrong with them.

#include <set>

#include "base/clock.hpp"
#include "base/pattern.hpp"
#include "cmd/submission/submission_pages.hpp"
#include "metrics/prometheus_tool.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/refusing_port.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::document_test {
namespace {

struct Described {
  std::string type;
  std::set<std::string> labels;

  bool operator==(const Described&) const = default;
};

std::set<std::string> words_in(const std::string& text, const Pattern& form) {
  std::set<std::string> words;
  for (const auto& match : form.all(text))
    words.insert(match[1]);
  return words;
}

std::map<std::string, Described> documented() {
  const auto text = read_file(source_directory + "/docs/metrics.md");
  const Pattern row(R"re(\| `([a-z_]+)` \| (counter|gauge|histogram) \| ([^|]*)\|)re");
  std::map<std::string, Described> metrics;
  for (const auto& match : row.all(text)) {
    const bool is_new =
        metrics.emplace(match[1], Described{match[2], words_in(match[3], Pattern("`([a-z]+)`"))}).second;
    INFO(match[1]);
    CHECK(is_new);
  }
  return metrics;
}

/// The family of a series, and the names of its labels.
std::pair<std::string, std::set<std::string>> parts_of(const std::string& series, const Scrape& scrape) {
  auto name = series.substr(0, series.find('{'));
  if (scrape.types.count(name) == 0) name = Pattern("_(bucket|sum|count)$").replaced(name, "");
  auto labels = words_in(series, Pattern(R"re(([a-z]+)=")re"));
  labels.erase("le");
  return {name, labels};
}

/// Two transactions, of which the second leaves a gap for the first.
void leave_gap(db::Connection& open, db::Connection& connection) {
  open.run("BEGIN");
  open.run("INSERT INTO accounts (email, login) VALUES ('open@mail.example', 'open')");
  insert_accounts(connection, 2, "after");
}

}  // namespace

TEST_CASE("the page on metrics lists what a scrape shows, no more and no less") {
  const TestDatabase database;
  const auto connection = database.connect();
  const auto open = database.connect();
  connection->run(
      "INSERT INTO mailroom_budgets (name, tokens, period, burst) VALUES ('mailroom', 1000, '1 s', 1000)");
  connection->run("INSERT INTO mailroom_queues (name, budgets) VALUES ('mailroom', '{mailroom}')");
  connection->run(
      "SELECT mailroom_send('{a@mail.example}', subject => 's', text => 't', send_after => now() + interval '1 day')");
  connection->run(
      "INSERT INTO mailroom_sinks VALUES ('relay.example:587', 1, now(), now(), now() + interval '1 h', 'down')");
  TestCollector collector(database, {"--metrics", "127.0.0.1:0", "--batch-limit", "1"});
  const auto collects = metrics_address([&] { return collector.log(); });
  leave_gap(*open, *connection);
  REQUIRE(eventually([&] { return collector.lines().size() == 2; }));
  const TestRelay relay;
  // Some metrics are there only with traces, which nobody takes here.
  const RefusingPort nobody;
  TestSender sender(database.conninfo(), relay.url(), {"--metrics", "127.0.0.1:0"},
                    {{"MAILROOM_TRACE_ENDPOINT", "http://127.0.0.1:" + std::to_string(nobody.port())}});
  const auto sends = metrics_address([&] { return sender.log(); });
  CHECK(collector.stop() == 0);
  insert_accounts(*connection, 1, "mailed");
  REQUIRE(eventually([&] { return Scrape::of(sends).sum("mailroom_sink_answers_total") == 1; }));
  connection->run("UPDATE mailroom_queues SET paused_at = now(), paused_by = 'test'");
  TestCollector again(database, {"--metrics", "127.0.0.1:0"});
  const auto collects_again = metrics_address([&] { return again.log(); });
  REQUIRE(eventually([&] { return Scrape::of(collects_again).sum("mailroom_queue_paused") == 1; }));

  std::map<std::string, Described> shown;
  const Scrape submits(
      cmd::submission_metrics({.accepted = {{"shop", 1}}, .refusals = {{550, 1}}}, wall_now()));
  for (const auto& scrape : {Scrape::of(collects_again), Scrape::of(sends), submits}) {
    check_metrics(scrape.text);
    for (const auto& [name, type] : scrape.types)
      shown[name].type = type;
    for (const auto& [series, value] : scrape.values) {
      const auto [name, labels] = parts_of(series, scrape);
      INFO(series);
      CHECK((shown[name].labels.empty() || shown[name].labels == labels));
      shown[name].labels = labels;
    }
  }
  const auto written = documented();
  for (const auto& [name, metric] : shown) {
    INFO(name);
    REQUIRE(written.count(name) == 1);
    CHECK(written.at(name).type == metric.type);
    CHECK(written.at(name).labels == metric.labels);
  }
  for (const auto& [name, metric] : written) {
    INFO(name);
    CHECK(shown.count(name) == 1);
  }
  open->run("ROLLBACK");
}

}  // namespace mailroom::test::document_test
